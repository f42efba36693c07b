package mcptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/store"
)

const keyPath = "params/_meta/io.github.codexmcp~1idempotencyKey"

// metas are the _meta of a call with an idempotency key, as JSON, by the era of MCP.
var metas = map[string]func(key string) string{
	"handshake":  func(key string) string { return `{"io.github.codexmcp/idempotencyKey":` + key + `}` },
	"2026-07-28": func(key string) string { return servertest.MetaWith(`"io.github.codexmcp/idempotencyKey":` + key) },
}

// user is a client of a principal.
type user struct {
	*servertest.Client
	t    *testing.T
	meta func(key string) string
}

func newUser(t *testing.T, p *codexserver.Principal, meta func(string) string) user {
	t.Helper()
	return user{servertest.Dial(t, p, nil), t, meta}
}

func principal(t *testing.T, s *codexserver.Server, name string) *codexserver.Principal {
	p := s.Principal(context.Background(), name)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// codex calls codex with a key and arguments, which are JSON.
func (u user) codex(key, arguments string) string {
	u.t.Helper()
	return u.Ask(u.t, "tools/call", fmt.Sprintf(`{"name":"codex","arguments":%s,"_meta":%s}`, arguments, u.meta(key)))
}

// echo is an engine whose turns return their prompts. A prompt that begins with "slow" takes half a minute.
func echo() *servertest.Engine {
	return &servertest.Engine{Turn: func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		words := protocol.TextOf(in)
		if strings.HasPrefix(words, "slow") {
			if err := servertest.Wait(ctx, 30*time.Second); err != nil {
				return err
			}
		}
		host.Emit(protocol.AgentMessage{Message: "did " + words})
		return nil
	}}
}

// TestKeys calls codex with {"prompt":"a","cwd":"/"} and a key, and then once more.
func TestKeys(t *testing.T) {
	long := strings.Repeat("~", 128)
	for _, tt := range []struct {
		name, key, again, arguments string
		threads                     int
		want                        string // in the second answer
	}{
		{"the same", `"k"`, `"k"`, `{"cwd":"/","prompt":"a"}`, 1, `"did a"`},
		{"a long key", `"` + long + `"`, `"` + long + `"`, `{"prompt":"a","cwd":"/"}`, 1, `"did a"`},
		{"other arguments", `"k"`, `"k"`, `{"prompt":"b","cwd":"/"}`, 1, keyPath + ": a call with this key had other arguments"},
		{"one more argument", `"k"`, `"k"`, `{"prompt":"a","cwd":"/","background":true}`, 1, keyPath},
		{"another key", `"k"`, `"K"`, `{"prompt":"a","cwd":"/"}`, 2, `"did a"`},
		{"empty", `"k"`, `""`, `{"prompt":"a","cwd":"/"}`, 1, keyPath + ": want a string of 1 to 128"},
		{"too long", `"k"`, `"` + long + `~"`, `{"prompt":"a","cwd":"/"}`, 1, keyPath + ": want"},
		{"a space", `"k"`, `"k k"`, `{"prompt":"a","cwd":"/"}`, 1, keyPath + ": want"},
		{"a control character", `"k"`, `"k\u007f"`, `{"prompt":"a","cwd":"/"}`, 1, keyPath + ": want"},
		{"not ASCII", `"k"`, `"ķ"`, `{"prompt":"a","cwd":"/"}`, 1, keyPath + ": want"},
		{"null", `"k"`, `null`, `{"prompt":"a","cwd":"/"}`, 1, keyPath + ": want"},
		{"a number", `"k"`, `1`, `{"prompt":"a","cwd":"/"}`, 1, keyPath + ": want"},
	} {
		for era, meta := range metas {
			t.Run(tt.name+"/"+era, func(t *testing.T) {
				e, home := echo(), t.TempDir()
				u := newUser(t, principal(t, codexserver.New(e, &codexserver.Options{Home: home}), "ann"), meta)
				first := u.codex(tt.key, `{"prompt":"a","cwd":"/"}`)
				id := servertest.ThreadOf(t, first)
				again := u.codex(tt.again, tt.arguments)
				if !strings.Contains(again, tt.want) || len(e.Started()) != tt.threads || len(e.Turns()) != tt.threads {
					t.Errorf("%d threads; first\n%s\nthen\n%s", len(e.Started()), first, again)
				}
				if strings.HasPrefix(tt.want, `"did`) && (tt.threads == 1) != (servertest.ThreadOf(t, again) == id) {
					t.Errorf("another thread: %s", again)
				}
				got := u.Ask(t, "tools/call", `{"name":"codex-interrupt","arguments":{"threadId":"`+id+`"},"_meta":`+meta(`" "`)+`}`)
				if strings.Contains(got, keyPath) {
					t.Errorf("another tool: %s", got)
				}
				files, err := filepath.Glob(filepath.Join(home, "codex-mcp", "idempotency", "*"))
				if err != nil || len(files) != 2 {
					t.Errorf("%v, %v", files, err)
				}
				for _, f := range files {
					if info, err := os.Stat(f); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
						t.Errorf("%v, %v", info, err)
					}
				}
			})
		}
	}
}

// TestKeyAfterReplies has the result of the first turn after later ones of its conversation, and of
// more others than are kept of calls without a key. A principal does not see the key of another.
func TestKeyAfterReplies(t *testing.T) {
	e := echo()
	s := codexserver.New(e, &codexserver.Options{Home: t.TempDir()})
	u := newUser(t, principal(t, s, "ann"), metas["handshake"])
	id := servertest.ThreadOf(t, u.codex(`"k"`, `{"prompt":"a"}`))
	for range 20 {
		u.CallTool(t, "codex-reply", `{"threadId":"`+id+`","prompt":"more"}`)
		u.CallTool(t, "codex", `{"prompt":"other"}`)
	}
	if got := u.codex(`"k"`, `{"prompt":"a"}`); servertest.ThreadOf(t, got) != id || !strings.Contains(got, "did a") {
		t.Errorf("then %s", got)
	}
	bob := newUser(t, principal(t, s, "bob"), metas["handshake"])
	if got := bob.codex(`"k"`, `{"prompt":"b"}`); servertest.ThreadOf(t, got) == id || !strings.Contains(got, "did b") {
		t.Errorf("bob: %s", got)
	}
}

// TestKeyAtOnce calls three times at once, over two connections, where only one turn may run. The
// turn has a background call's interim result, too.
func TestKeyAtOnce(t *testing.T) {
	t.Parallel()
	for era, meta := range metas {
		for _, background := range []bool{false, true} {
			t.Run(fmt.Sprint(era, " background ", background), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := echo()
					s := codexserver.New(e, &codexserver.Options{Home: t.TempDir(), Calls: codexserver.CallOptions{Turns: 1}})
					p := principal(t, s, "ann")
					one, two := newUser(t, p, meta), newUser(t, p, meta)
					answers := make(chan string)
					for _, u := range []user{one, one, two} {
						go func() { answers <- u.codex(`"k"`, fmt.Sprintf(`{"prompt":"slow","background":%v}`, background)) }()
					}
					ids, whole := map[string]bool{}, 0
					for range 3 {
						got := <-answers
						ids[servertest.ThreadOf(t, got)] = true
						if whole += strings.Count(got, `"did slow"`); strings.Contains(got, "isError") {
							t.Error(got)
						}
					}
					if want := map[bool]int{false: 3, true: 0}[background]; len(ids) != 1 || len(e.Started()) != 1 || whole < want {
						t.Errorf("%d threads, %d began, %d whole", len(ids), len(e.Started()), whole)
					}
					if got := two.codex(`"k"`, fmt.Sprintf(`{"prompt":"slow","background":%v}`, background)); !strings.Contains(got, "did slow") {
						t.Error(got)
					}
				})
			})
		}
	}
}

// TestKeyAfterCrash starts another server with the home of one that was killed, after the record and
// during the turn, or with its store on another machine.
func TestKeyAfterCrash(t *testing.T) {
	for _, machine := range []string{"the same", "another"} {
		for era, meta := range metas {
			t.Run(machine+"/"+era, func(t *testing.T) {
				home, left, disk := t.TempDir(), t.TempDir(), t.TempDir()
				began, end := make(chan struct{}), make(chan struct{})
				defer close(end)
				first := &servertest.Engine{Turn: func(context.Context, engine.Host, []protocol.InputItem) error {
					close(began)
					<-end
					return nil
				}}
				var mirror *store.Mirror
				if machine == "another" {
					mirror = mirrorOf(t, home, disk, 1, nil)
				}
				u := newUser(t, principal(t, codexserver.New(first, &codexserver.Options{Home: home, Store: mirror}), "ann"), meta)
				u.Start(t.Context(), "tools/call", json.RawMessage(`{"name":"codex","arguments":{"prompt":"a"},"_meta":`+meta(`"k"`)+`}`))
				<-began
				if machine == "another" {
					mirror = mirrorOf(t, left, disk, 2, nil)
				} else {
					if err := os.CopyFS(left, os.DirFS(home)); err != nil {
						t.Fatal(err)
					}
					files, err := filepath.Glob(filepath.Join(left, "codex-mcp", "idempotency", "*.json"))
					if err != nil || len(files) != 1 || os.Chmod(files[0], 0o600) != nil { // CopyFS lets others read
						t.Fatalf("%v, %v", files, err)
					}
				}
				next := echo()
				u = newUser(t, principal(t, codexserver.New(next, &codexserver.Options{Home: left, Store: mirror}), "ann"), meta)
				got := u.codex(`"k"`, `{"prompt":"a"}`)
				if id := first.Started()[0].ID; servertest.ThreadOf(t, got) != id || !strings.Contains(got, `"isError":true`) || !strings.Contains(got, "codex-reply continues") {
					t.Errorf("for %s: %s", id, got)
				}
				if got := u.codex(`"k"`, `{"prompt":"b"}`); !strings.Contains(got, keyPath) || len(next.Started()) > 0 {
					t.Errorf("%d began: %s", len(next.Started()), got)
				}
			})
		}
	}
}

// full is a store that calls full, unless that is nil, before it writes idempotency keys.
type full struct {
	store.Store
	full func() error
}

func (f *full) Put(ctx context.Context, name string, data []byte) error {
	if f.full != nil && strings.Contains(name, "idempotency") {
		if err := f.full(); err != nil {
			return err
		}
	}
	return f.Store.Put(ctx, name, data)
}

// mirrorOf returns the mirror of a home in a folder, through f unless it is nil.
func mirrorOf(t *testing.T, home, disk string, epoch uint64, f *full) *store.Mirror {
	t.Helper()
	d, err := store.OpenDir(disk, epoch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	var s store.Store = d
	if f != nil {
		f.Store, s = d, f
	}
	m, err := store.Open(t.Context(), home, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestKeyCannotBeKept calls where the store has no room for the key, where the home has none, and
// without a home. Nothing runs, and the key is free afterwards.
func TestKeyCannotBeKept(t *testing.T) {
	home, disk := t.TempDir(), t.TempDir()
	folder := filepath.Join(home, "codex-mcp", "idempotency")
	e, f := echo(), &full{full: func() error { return store.ErrFull }}
	options := &codexserver.Options{Home: home, Store: mirrorOf(t, home, disk, 1, f)}
	u := newUser(t, principal(t, codexserver.New(e, options), "ann"), metas["2026-07-28"])
	check := func() {
		t.Helper()
		got := u.codex(`"k"`, `{"prompt":"a"}`)
		if !strings.Contains(got, keyPath) || !strings.Contains(got, "nothing was started") || !strings.Contains(got, "isError") || len(e.Turns()) > 0 {
			t.Errorf("%d turns: %s", len(e.Turns()), got)
		}
		if open := u.Ask(t, "resources/list", `{"_meta":`+servertest.Meta+`}`); !strings.Contains(open, "resources") || strings.Contains(open, "codex://") {
			t.Errorf("a conversation is open: %s", open)
		}
	}
	check()
	f.full = func() error { // the file cannot be written after the store has it
		return errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600))
	}
	check()
	names, err := filepath.Glob(filepath.Join(disk, "codex-mcp", "idempotency", "*.json"))
	if err != nil || len(names) > 0 {
		t.Errorf("the store has %q, %v", names, err)
	}
	check() // nor can it be read
	f.full = nil
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if got := u.codex(`"k"`, `{"prompt":"a"}`); !strings.Contains(got, "did a") {
		t.Error(got)
	}
	e = echo()
	u = newUser(t, principal(t, codexserver.New(e, nil), "ann"), metas["2026-07-28"])
	check()
}
