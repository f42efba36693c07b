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
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/google/go-cmp/cmp"
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
	if err := isolate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(memdir.Run(m))
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

// TestKill kills a process while it applies a plan. The mark that it leaves names the tree and
// its branch, and another plan has the rest, and removes the temporary file.
func TestKill(t *testing.T) {
	t.Parallel()
	// After the first file, in between, after a new file has its name besides the temporary
	// one, and after the last.
	b := newBench(t)
	first := map[string]string{"a": "a", "run": "r", "s/t/gone": "g", "f": "f", "z": "z", "l": "> a"}
	b.commit(first)
	w := b.create(repo.CreateOptions{ThreadID: "t"})
	for _, at := range []int{1, 8, 11, 16} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			lay(t, b.dir, map[string]string{"f": "-", "n": "-", "run": "-"}) // of the row before
			lay(t, b.dir, first)
			lay(t, w.Path(), map[string]string{"a": "A", "n/m/new": "x", "run": "+x", "s/t/gone": "-", "f": "-", "f/inner": "i", "l": "> z", "z": fmt.Sprint("Z", at)})
			b := b.killed(t, w, at)
			if len(changed(b.before, tree(t, b.dir))) == 0 {
				t.Fatal("nothing was written")
			}
			if err := b.store.Recover(); err != nil {
				t.Error(err)
			}
			want := []*repo.UnfinishedError{{ThreadID: "t", Root: b.dir, Branch: "branch main"}}
			if diff := cmp.Diff(want, b.store.Unfinished()); diff != "" {
				t.Error("(-want +got)\n" + diff)
			}
			if err := b.plan(w).Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, "the caller's tree", b.want, files(t, b.dir))
			if left := b.store.Unfinished(); left != nil {
				t.Errorf("unfinished: %v", left)
			}
			if left, err := filepath.Glob(filepath.Join(b.dir, "*", "*", ".codex-mcp-*")); err != nil || left != nil {
				t.Errorf("left: %q, %v", left, err)
			}
			if s, err := w.Status(t.Context()); err != nil || !s.Saved {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

// TestKillOther kills a process while it makes or discards a worktree. Nothing is left.
func TestKillOther(t *testing.T) {
	b := newBench(t)
	b.commit(map[string]string{"a": "a"})
	kept := b.create(repo.CreateOptions{})
	for _, phase := range []string{"make", "discard", "nothing yet"} {
		w := b.create(repo.CreateOptions{ThreadID: "t"})
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

// scene is a bench after a kill.
type scene struct {
	*bench
	before, want map[string]string
}

// killed has a process apply what is in the worktree of the thread t, and kill itself.
func (b *bench) killed(t *testing.T, w *repo.Worktree, at int) *scene {
	t.Helper()
	s := &scene{b.in(t), tree(t, b.dir), files(t, w.Path())}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+filepath.Dir(b.store.Trees)+"\nt\n"+strconv.Itoa(at))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("it was not killed: %v: %s", err, out)
	}
	return s
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
