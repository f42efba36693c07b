//go:build !windows

package repo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/repo"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

// victim is set in a process that kills itself while it applies a plan: the store, the
// thread, and the number of steps before.
const victim = "WORKTREE_TEST_VICTIM"

func TestMain(m *testing.M) {
	sandbox.Main() // this may be a keeper
	if order := os.Getenv(victim); order != "" {
		fmt.Println(apply(strings.Split(order, "\n")))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func apply(order []string) error {
	at, err := strconv.Atoi(order[2])
	if err != nil {
		return err
	}
	w, err := repo.StoreIn(order[0]).Find(order[1])
	if err != nil {
		return err
	}
	ctx := context.Background()
	p, err := w.Plan(ctx)
	if err != nil {
		return err
	}
	done := 0
	p.SetStep(func() {
		if done++; done == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	return p.Apply(ctx)
}

// TestKill kills a process while it applies a plan. It leaves a journal, and the next call
// restores all files.
func TestKill(t *testing.T) {
	for at := 1; at <= 14; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			b, w := killed(t, at)
			before := b.before
			if diff := len(changed(before, tree(t, b.dir))); diff == 0 {
				t.Fatal("nothing was written")
			}
			var err error
			if at%2 == 0 {
				err = b.store.Recover()
			} else {
				_, err = w.Plan(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			same(t, "the caller's tree", before, tree(t, b.dir))
			if left, err := filepath.Glob(filepath.Join(b.store.Records, "journals", "*")); err != nil || len(left) > 0 {
				t.Errorf("left: %q, %v", left, err)
			}
			if err := b.plan(w).Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, "the caller's tree, applied", b.want, files(t, b.dir))
		})
	}
}

// TestKillOther kills a process while it makes or discards a worktree. Nothing is left.
func TestKillOther(t *testing.T) {
	for _, phase := range []string{"make", "discard", "nothing yet"} {
		b := newBench(t)
		b.commit(map[string]string{"a": "a"})
		w, kept := b.create(repo.CreateOptions{ThreadID: "t"}), b.create(repo.CreateOptions{})
		path := filepath.Join(b.store.Records, w.ID(), "record.json")
		data, err := os.ReadFile(path)
		b.must(err)
		left := []string{filepath.Dir(path), filepath.Dir(w.Path()), filepath.Join(b.dir, ".git", "worktrees", "codex-mcp-"+w.ID())}
		if phase == "nothing yet" {
			b.must(os.Remove(path))
			left = left[:1]
		} else {
			b.must(os.WriteFile(path, []byte(strings.Replace(string(data), `"phase":"use"`, `"phase":"`+phase+`"`, 1)), 0o600))
		}
		if _, err := b.store.Find("t"); err == nil {
			t.Errorf("%s: it is found", phase)
		}
		if err := b.store.Recover(); err != nil {
			t.Errorf("%s: %v", phase, err)
		}
		for _, path := range left {
			if exists(path) {
				t.Errorf("%s: %s is left", phase, path)
			}
		}
		if s, err := kept.Status(t.Context()); err != nil || !s.Saved {
			t.Errorf("%s: the other one: %+v, %v", phase, s, err)
		}
	}
}

// TestKillChanged checks that a file that was changed after the kill is kept and reported.
func TestKillChanged(t *testing.T) {
	b, w := killed(t, 14)
	lay(t, b.dir, map[string]string{"a": "theirs"})
	_, err := w.Plan(t.Context())
	var lost *repo.RecoveryError
	if !errors.As(err, &lost) || len(lost.Paths) != 1 || filepath.Base(lost.Paths[0]) != "a" {
		t.Fatalf("%v", err)
	}
	after := tree(t, b.dir)
	if after["a"] != `-rw-r--r-- "theirs"` {
		t.Errorf("a is %s", after["a"])
	}
	after["a"] = b.before["a"]
	same(t, "the caller's tree", b.before, after)
	if kept, err := os.ReadFile(filepath.Join(lost.Folder, "0-a")); err != nil || string(kept) != "a" {
		t.Errorf("kept: %q, %v", kept, err)
	}
	// The next call succeeds.
	if err := b.store.Recover(); err != nil {
		t.Error(err)
	}
}

// TestJournalRefused checks that a journal of another program is refused.
func TestJournalRefused(t *testing.T) {
	b, w := killed(t, 5)
	found, err := filepath.Glob(filepath.Join(b.store.Records, "journals", "*", "journal.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v", found, err)
	}
	data, err := os.ReadFile(found[0])
	b.must(err)
	before := tree(t, b.dir)
	for _, pair := range [][2]string{
		{`"version":1`, `"version":9`}, {`"root":"`, `"root":"/x`}, {`"path":"a"`, `"path":"../a"`}, {`"path":"a"`, `"path":".git/a"`},
		{`"path":"a"`, `"path":"/a"`}, {`"tag":"`, `"tag":"../`}, {`"made":[{"path":"f"`, `"made":[{"path":".."`}, {`{`, `{"more":1,`},
	} {
		text := strings.Replace(string(data), pair[0], pair[1], 1)
		if text == string(data) {
			t.Fatalf("%s is not in %s", pair[0], data)
		}
		b.must(os.WriteFile(found[0], []byte(text), 0o600))
		var refused *repo.RecordError
		if _, err := w.Plan(t.Context()); !errors.As(err, &refused) {
			t.Errorf("%s: %v", pair[1], err)
		}
		same(t, "the caller's tree", before, tree(t, b.dir))
	}
	b.must(os.WriteFile(found[0], data, 0o600))
	b.plan(w)
	same(t, "the caller's tree", b.before, tree(t, b.dir))
}

// scene is a bench after a kill.
type scene struct {
	*bench
	before, want map[string]string
}

func killed(t *testing.T, at int) (*scene, *repo.Worktree) {
	t.Helper()
	b := newBench(t)
	b.commit(map[string]string{"a": "a", "run": "r", "s/t/gone": "g", "f": "f", "z": "z", "l": "> a"})
	w := b.create(repo.CreateOptions{ThreadID: "t"})
	lay(t, w.Path(), map[string]string{"a": "A", "n/m/new": "x", "run": "+x", "s/t/gone": "-", "f": "-", "f/inner": "i", "l": "> z", "z": "Z"})
	s := &scene{b, tree(t, b.dir), files(t, w.Path())}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+filepath.Dir(b.store.Trees)+"\nt\n"+strconv.Itoa(at))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("it was not killed: %v: %s", err, out)
	}
	return s, w
}

func changed(a, b map[string]string) []string {
	var names []string
	for name := range a {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}
