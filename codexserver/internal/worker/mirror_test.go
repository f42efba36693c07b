package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { os.Exit(memdir.Run(m)) }

const (
	talk  = "sessions/2026/11/22/rollout-2026-11-22T10-00-00-0199a213-81c0-7800-8aa1-bbab2a035a53.jsonl"
	other = "sessions/2026/11/22/rollout-2026-11-22T11-00-00-0199a213-81c0-7800-8aa1-bbab2a035a54.jsonl"
	gone  = "archived_sessions/rollout-2026-11-22T10-00-00-0199a213-81c0-7800-8aa1-bbab2a035a53.jsonl"
	task  = "codex-mcp/tasks/task-t.ABCDEFGHIJKLMNOPQRSTUVWXYZ.json"
	rules = "codex-mcp/rules.json"
)

// machine is a home on a machine, with a mirror in the store of a folder.
type machine struct {
	*testing.T
	*worker.Mirror
	home  string
	store *workertest.Dir
	calls int // that changed the store
}

func newMachine(t *testing.T, home, disk string, epoch uint64) *machine {
	t.Helper()
	m := &machine{T: t, home: home}
	m.Mirror, m.store = workertest.Mirror(t, home, disk, epoch)
	return m
}

// fails lets the calls fail that change the store.
func (m *machine) fails(fail func(call int) (err error, after bool)) {
	m.calls, m.store.Fail = 0, func(method string) (error, bool) {
		if method == "read" || method == "list" {
			return nil, false
		}
		m.calls++
		return fail(m.calls)
	}
}

// full is a store that takes nothing.
func full(int) (error, bool) { return worker.ErrFull, false }

func (m *machine) path(name string) string { return filepath.Join(m.home, filepath.FromSlash(name)) }

// write writes a file as a server does.
func (m *machine) write(name, text string) {
	m.Helper()
	writeFile(m.T, m.path(name), text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
}

// add appends to a file and sends it.
func (m *machine) add(name, text string) {
	m.Helper()
	f := must.Get(os.OpenFile(m.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))(m)
	_, err := f.WriteString(text)
	must.OK(m, err, f.Close(), m.Sync(m.path(name)))
}

// files returns the files below a folder that a store may have.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(name, ".") || name == "codex-mcp/store" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = string(text)
		return err
	})
	must.OK(t, err)
	return all
}

func want(t *testing.T, dir string, all map[string]string) {
	t.Helper()
	if diff := cmp.Diff(all, files(t, dir)); diff != "" {
		t.Errorf("%s (-want +got):\n%.3000s", dir, diff)
	}
}

// A home that existed before its store is sent, what is written is sent, and another machine gets all of it.
func TestMirror(t *testing.T) {
	disk, home := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(home, talk), "old\n")
	writeFile(t, filepath.Join(home, task), "{}")
	for _, name := range []string{"config.toml", "auth.json", "codex-mcp/http-token", "codex-mcp/tasks/server-X", "codex-mcp/tasks/.tmp-1", "sessions/notes.txt"} {
		writeFile(t, filepath.Join(home, name), "of this machine")
	}
	m := newMachine(t, home, disk, 1)
	all := map[string]string{talk: "old\n", task: "{}"}
	want(t, disk, all)
	m.add(talk, "new\n")
	m.add(talk, "")
	m.add(talk, "torn")
	m.write(other, strings.Repeat("x", 3*worker.MaxData)+"\nlast\ntorn")
	must.Check(t, errors.Join(m.Sync(m.path(other)), m.Put(m.path(rules), []byte("1")), m.Delete(m.path(task)), m.Ready(t.Context())))
	all[talk], all[other], all[rules] = "old\nnew\n", strings.Repeat("x", 3*worker.MaxData)+"\nlast\n", "1"
	delete(all, task)
	want(t, disk, all)
	m.add(talk, " line\n")
	all[talk] += "torn line\n"
	m.write(gone, all[talk])
	must.Check(t, m.Sync(m.path(gone)))
	must.Check(t, m.Delete(m.path(talk)))
	all[gone] = all[talk]
	delete(all, talk)
	want(t, disk, all)
	next := t.TempDir()
	n := newMachine(t, next, disk, 2)
	want(t, next, all)
	n.write(gone, all[gone]+"more\n")
	n.add(gone, "")
	all[gone] += "more\n"
	want(t, disk, all)
	if err := m.Sync(m.path(other)); err != nil {
		t.Errorf("nothing was to be sent: %v", err)
	}
	select {
	case <-m.Fenced():
		t.Error("nothing was written")
	default:
	}
	if err := m.Err(); err != nil {
		t.Errorf("nothing was written: %v", err)
	}
	m.write(other, files(t, home)[other]+"\nx\n")
	if err := m.Sync(m.path(other)); !errors.Is(err, worker.ErrFenced) {
		t.Error(err)
	}
	<-m.Fenced()
	if err := m.Err(); !errors.Is(err, worker.ErrFenced) {
		t.Errorf("another has written: %v", err)
	}
	if err := n.Err(); err != nil {
		t.Errorf("the other: %v", err)
	}
	want(t, disk, all)
}

// What the rest of a home means depends on who wrote to the store last.
func TestMirrorReopens(t *testing.T) {
	disk, home, away := t.TempDir(), t.TempDir(), t.TempDir()
	m := newMachine(t, home, disk, 1)
	m.write(talk, "one\n")
	m.add(talk, "")
	m.write(task, "1")
	must.OK(t, m.Put(m.path(task), []byte("1")))
	// The server ends before it has sent the last lines, and the system loses others.
	m.write(talk, "one\ntwo\n")
	m.write(task, "2")
	m.write(other, "new\n")
	newMachine(t, home, disk, 2)
	all := map[string]string{talk: "one\ntwo\n", task: "2", other: "new\n"}
	want(t, disk, all)
	want(t, home, all)
	m.write(talk, "on")
	must.OK(t, os.Remove(m.path(other)))
	newMachine(t, home, disk, 3)
	want(t, disk, all)
	want(t, home, all)

	// Another machine writes, then this one again, whose files are old.
	n := newMachine(t, away, disk, 4)
	n.add(talk, "three\n")
	must.OK(t, n.Delete(n.path(task)))
	all[talk] += "three\n"
	delete(all, task)
	m.write(talk, "one\ntwo\nnever sent\n")
	newMachine(t, home, disk, 5)
	want(t, disk, all)
	got := files(t, home)
	for name, text := range map[string]string{talk: "one\ntwo\nnever sent\n", task: "2", other: "new\n"} {
		all["codex-mcp/replaced/"+name] = text
	}
	must.Equal(t, "the home", all, got)
}

// A file may be replaced or cut, also while it is not known what the store has of it.
func TestMirrorChanges(t *testing.T) {
	for name, change := range map[string]func(m *machine){
		"replaced by a longer one": func(m *machine) {
			m.write("sessions/temp", "other\nlines\nthan before\n")
			must.OK(m, os.Rename(m.path("sessions/temp"), m.path(talk)))
		},
		"replaced while the store is full": func(m *machine) {
			must.OK(m, os.Rename(m.path(talk), m.path("config.toml")))
			m.write(talk, "new\n")
			m.fails(full)
			if err := m.Sync(m.path(talk)); !errors.Is(err, worker.ErrFull) {
				m.Error(err)
			}
			m.store.Fail = nil
			must.OK(m, os.Remove(m.path("config.toml")))
		},
		"cut":                  func(m *machine) { m.write(talk, "on\n") },
		"empty":                func(m *machine) { m.write(talk, "") },
		"another line there":   func(m *machine) { m.putDirectly(talk, "one\nbad\n"); m.add(talk, "two\nthree\n") },
		"another in the store": func(m *machine) { m.putDirectly(talk, "something\n"); m.add(talk, "x\n") },
		"more in the store":    func(m *machine) { m.putDirectly(talk, "one\ntwo\nthree\n"); m.add(talk, "two\n") },
		"none in the store": func(m *machine) {
			must.OK(m, m.store.Delete(m.Context(), talk))
			m.add(talk, "two\n")
		},
		"the append happened": func(m *machine) { m.putDirectly(talk, "one\ntwo\n"); m.add(talk, "two\nthree\n") },
	} {
		t.Run(name, func(t *testing.T) {
			disk := t.TempDir()
			m := newMachine(t, t.TempDir(), disk, 1)
			m.write(talk, "one\n")
			m.add(talk, "")
			change(m)
			m.add(talk, "")
			m.add(talk, "and more\n")
			want(t, disk, files(t, m.home))
		})
	}
}

func (m *machine) putDirectly(name, text string) {
	m.Helper()
	must.OK(m, m.store.Put(m.Context(), name, []byte(text)))
}

// Each call may fail, also after it has happened. The next one makes it good.
func TestMirrorFails(t *testing.T) {
	for at := 1; at < 12; at++ {
		for _, after := range []bool{false, true} {
			for _, kind := range [][]error{{worker.ErrFull}, {worker.ErrUnavailable}}[at%2] {
				t.Run(fmt.Sprint(kind, at, after), func(t *testing.T) {
					disk := t.TempDir()
					m := newMachine(t, t.TempDir(), disk, 1)
					m.fails(func(call int) (error, bool) {
						if call == at {
							return kind, after
						}
						return nil, false
					})
					again := func(f func() error) {
						t.Helper()
						before := m.calls
						if err := f(); (err == nil) == (before < at && m.calls >= at) || err != nil && !errors.Is(err, kind) {
							t.Errorf("calls %d to %d: %v", before, m.calls, err)
						} else if err != nil {
							must.Check(t, f())
						}
					}
					for i := range 3 {
						m.write(talk, strings.Repeat("line\n", 60_000*(i+1)))
						again(func() error { return m.Sync(m.path(talk)) })
					}
					again(func() error { return m.Put(m.path(task), []byte("1")) })
					m.write(task, "1")
					again(func() error { return m.Ready(t.Context()) })
					again(func() error { return m.Put(m.path(rules), []byte("1")) })
					again(func() error { return m.Delete(m.path(rules)) })
					want(t, disk, files(t, m.home))
				})
			}
		}
	}
}

// An opening fails if the store does, and is done again by the next one.
func TestMirrorOpenFails(t *testing.T) {
	disk, home := t.TempDir(), t.TempDir()
	m := newMachine(t, home, disk, 1)
	must.OK(t, m.Put(m.path(rules), nil))
	m.write(talk, "one\n")
	m.add(talk, "")
	next := t.TempDir()
	writeFile(t, filepath.Join(next, other), "its own\n")
	for n := 1; ; n++ {
		s, err := workertest.OpenDir(disk, 2)
		must.OK(t, err)
		left := n
		s.Fail = func(string) (error, bool) {
			if left--; left < 0 {
				return worker.ErrUnavailable, false
			}
			return nil, false
		}
		if _, err = worker.Open(t.Context(), next, s, nil); err == nil {
			break
		}
		if !errors.Is(err, worker.ErrUnavailable) || n > 50 {
			t.Fatal(err)
		}
	}
	want(t, next, map[string]string{talk: "one\n", rules: "", "codex-mcp/replaced/" + other: "its own\n"})
}

// hung is a store that does not answer while it is closed.
type hung struct {
	worker.Store
	closed bool
}

func (h *hung) Put(ctx context.Context, name string, data []byte) error {
	if h.closed {
		<-ctx.Done()
		return ctx.Err()
	}
	return h.Store.Put(ctx, name, data)
}

// A store that does not answer costs one time limit, and then nothing for a while.
func TestMirrorHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must.Get(workertest.OpenDir(t.TempDir(), 1))(t)
		h := &hung{Store: s}
		m := must.Get(worker.Open(t.Context(), t.TempDir(), h, &worker.Options{Timeout: 3 * time.Second}))(t)
		defer m.Close()
		h.closed = true
		began := time.Now()
		for range 100 {
			if err := m.Ready(t.Context()); !errors.Is(err, worker.ErrUnavailable) {
				t.Error(err)
			}
		}
		must.Equal(t, "the time that it took", 3*time.Second, time.Since(began))
		h.closed = false
		time.Sleep(2 * time.Second)
		must.Check(t, m.Ready(t.Context()))
	})
}

// A store behind a connection that has ended takes no write any more.
func TestMirrorEnds(t *testing.T) {
	m := newMachine(t, t.TempDir(), t.TempDir(), 1)
	m.store.End = make(chan struct{})
	must.Check(t, m.Err())
	close(m.store.End)
	if err := m.Err(); !errors.Is(err, worker.ErrUnavailable) {
		t.Errorf("its connection has ended: %v", err)
	}
}

// A file of another folder is not in the store, so nothing may depend on it.
func TestMirrorRefuses(t *testing.T) {
	m := newMachine(t, t.TempDir(), t.TempDir(), 1)
	path := filepath.Join(t.TempDir(), "rollout.jsonl")
	writeFile(t, path, "line\n")
	for _, err := range []error{m.Sync(path), m.Put(path, nil), m.Delete(path)} {
		if err == nil || !strings.Contains(err.Error(), "is not in") {
			t.Error(err)
		}
	}
	for _, err := range []error{m.Sync(m.path("a b")), m.Put(m.path(".x"), nil)} {
		if !errors.Is(err, worker.ErrName) {
			t.Error(err)
		}
	}
	if err := m.Sync(m.path(talk)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	var none *worker.Mirror
	if err := errors.Join(none.Sync(path), none.Put(path, nil), none.Delete(path), none.Ready(t.Context()), none.Err()); err != nil || none.Decisions() != nil || none.Fenced() != nil {
		t.Errorf("without a store: %v", err)
	}
	none.Close()
}

// A store cannot make an opening write outside of the home.
func TestMirrorDistrusts(t *testing.T) {
	disk, home, outside := t.TempDir(), t.TempDir(), t.TempDir()
	s := must.Get(workertest.OpenDir(disk, 1))(t)
	if err := errors.Join(s.Put(t.Context(), talk, []byte("x\n")), s.Put(t.Context(), "config.toml", []byte("x")), s.Put(t.Context(), "codex-mcp/http-token", []byte("x"))); err != nil {
		t.Fatal(err)
	}
	testenv.NeedsLinks(t)
	must.OK(t, os.Symlink(outside, filepath.Join(home, "sessions")))
	if _, err := worker.Open(t.Context(), home, s, nil); err == nil {
		t.Error("it wrote through a link")
	}
	want(t, outside, map[string]string{})
	next := t.TempDir()
	if _, err := worker.Open(t.Context(), next, s, nil); err != nil {
		t.Fatal(err)
	}
	want(t, next, map[string]string{talk: "x\n"})
}

// Each decision is in the store before its write has returned, in a file of its own server.
func TestDecisions(t *testing.T) {
	disk, home := t.TempDir(), t.TempDir()
	m := newMachine(t, home, disk, 1)
	w := m.Decisions()
	for i := range 3 {
		if _, err := fmt.Fprintf(w, "%d\n", i); err != nil {
			t.Error(err)
		}
	}
	m.fails(full)
	if _, err := fmt.Fprintln(w, "3"); !errors.Is(err, worker.ErrFull) {
		t.Error(err)
	}
	got := files(t, disk)
	for name := range maps.Keys(got) {
		if !strings.HasPrefix(name, "codex-mcp/decisions/") || got[name] != "0\n1\n2\n" {
			t.Error(got)
		}
	}
	next := t.TempDir()
	n := newMachine(t, next, disk, 2)
	want(t, next, map[string]string{})
	if _, err := fmt.Fprintln(n.Decisions(), "4"); err != nil {
		t.Error(err)
	}
	if all := files(t, disk); len(got) != 1 || len(all) != 2 {
		t.Error(all)
	}
	if all := files(t, next); len(all) != 1 || !strings.Contains(fmt.Sprint(all), "4") {
		t.Error(all)
	}
}

// TestHand checks that a principal's home receives the configuration without the settings by which other principals sign in.
func TestHand(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Names)
	server, own := filepath.Join(t.TempDir(), "[server"), filepath.Join(t.TempDir(), "o[w]n*")
	write := func(dir string, files map[string]string) {
		t.Helper()
		for name, text := range files {
			path := filepath.Join(dir, name)
			must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
		}
	}
	hash := "sha256:" + strings.Repeat("ab", 32)
	write(server, map[string]string{
		"codex-mcp.toml": `calls.tools = ["codex-list"]
[http]
hosts = ["example.com"]
[http.principals.ann]
tokens = ["` + hash + `"]
folders = ["/srv/ann"]
[approvals]
log = "/var/log/approvals"
page_port = 4000
page_origin = "https://pages.example"
timeout = "90s"
deny = [["rm", "-rf"]]
[limits]
tasks = 7
`,
		"config.toml": "model = 'a'\n", "work.config.toml": "model = 'b'\n", "AGENTS.md": "rules", "rules/default.rules": "forbid",
		"auth.json": "secret", "codex-mcp/http-token": "secret",
	})
	write(own, map[string]string{"config.toml": "model = 'old'\n", "loose.config.toml": "sandbox_mode = 'danger-full-access'\n", "auth.json": "own", "other": "stays"})
	for name, to := range map[string]string{"AGENTS.md": "other", "AGENTS.override.md": "made later"} {
		must.OK(t, os.Symlink(filepath.Join(own, to), filepath.Join(own, name)))
	}
	files := must.Get(worker.Hand(server))(t)
	for name, text := range files {
		if strings.Contains(string(text), hash[7:]) || strings.Contains(string(text), "secret") {
			t.Errorf("%s has %s", name, text)
		}
	}
	must.OK(t, worker.Take(own, files))
	write(own, map[string]string{"made later": "the principal's own"})
	got := map[string]string{}
	for _, name := range []string{"config.toml", "work.config.toml", "loose.config.toml", "AGENTS.md", "AGENTS.override.md", "rules/default.rules", "auth.json", "other"} {
		if text, err := os.ReadFile(filepath.Join(own, name)); err == nil {
			got[name] = string(text)
		}
	}
	want := map[string]string{
		"config.toml": "model = 'a'\n", "work.config.toml": "model = 'b'\n", "AGENTS.md": "rules", "rules/default.rules": "forbid", "auth.json": "own", "other": "stays",
	}
	must.Equal(t, "the principal's home", want, got)
	of := func(home string) *config.Settings {
		t.Helper()
		s, _, err := config.LoadSettings(home, nil)
		must.OK(t, err)
		return s
	}
	a, b := of(server), of(own)
	a.HTTP, a.Approvals.Log, a.Approvals.PagePort, a.Approvals.PageOrigin = b.HTTP, nil, 0, ""
	must.Equal(t, "the settings of the principal", a, b)
	if err := worker.Take(own, map[string][]byte{"../config.toml": nil}); err == nil {
		t.Error("a file outside of the home was written")
	}
	write(server, map[string]string{"codex-mcp.toml": "tools = ["})
	if files, err := worker.Hand(server); err == nil {
		t.Errorf("settings that cannot be read were handed: %q", files)
	}
}
