package rollout_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
)

func newLocks(t *testing.T, home, program string) *rollout.Locks {
	l := rollout.NewLocks(home, program)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// held fails the test unless another server has the rollout.
func held(t *testing.T, l *rollout.Locks, path string) *rollout.HeldError {
	t.Helper()
	release, err := l.Acquire(path)
	if err == nil {
		release()
	}
	var held *rollout.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("Acquire: %v, want a HeldError", err)
	}
	return held
}

// free fails the test unless the rollout can be claimed.
func free(t *testing.T, l *rollout.Locks, path string) (release func()) {
	t.Helper()
	release, err := l.Acquire(path)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return release
}

func TestLocks(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "a.jsonl")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(home, "link.jsonl")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	one, two := newLocks(t, home, "one 1.0"), newLocks(t, home, "two")
	if got := two.Holder(path); got != nil {
		t.Errorf("nobody has it: %v", got)
	}
	release := free(t, one, path)
	for other, own := range map[*rollout.Locks]bool{one: true, two: false} {
		if got := other.Holder(link); got == nil || got.Own != own || got.PID != os.Getpid() {
			t.Errorf("Holder: %+v", got)
		}
	}
	for _, other := range []*rollout.Locks{two, one} {
		for _, name := range []string{path, link} {
			if err := held(t, other, name); err.Own != (other == one) || err.PID != os.Getpid() || err.Program != "one 1.0" ||
				!strings.Contains(err.Error(), fmt.Sprintf("one 1.0 (process %d on ", os.Getpid())) {
				t.Errorf("held: %v", err)
			}
		}
	}
	free(t, two, filepath.Join(home, "b.jsonl"))()
	release()
	again := free(t, two, path)
	release() // which released already
	held(t, one, path)
	again()
	free(t, one, path)()
	// A rollout that was removed is the same below each link to its folder.
	if err := errors.Join(os.Remove(path), os.Symlink(home, filepath.Join(home, "linked"))); err != nil {
		t.Fatal(err)
	}
	free(t, one, path)
	held(t, two, filepath.Join(home, "linked", "a.jsonl"))
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	if _, err := one.Acquire(path); !errors.Is(err, os.ErrClosed) || one.Holder(path) != nil {
		t.Errorf("after Close: %v, %v", err, one.Holder(path))
	}
	if claims, err := filepath.Glob(filepath.Join(home, "codex-mcp-locks", "rollout-*")); err != nil || len(claims) > 0 || two.Holder(path) != nil {
		t.Errorf("Close left %q, %v", claims, err)
	}
	free(t, two, path)()
}

// TestLocksExclude claims one rollout many times at once: one claim works.
func TestLocksExclude(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "a.jsonl")
	var all sync.WaitGroup
	var mu sync.Mutex
	holders, claims := 0, 0
	for range 4 {
		l := newLocks(t, home, "test")
		for range 4 {
			all.Go(func() {
				for range 50 {
					release, err := l.Acquire(path)
					var held *rollout.HeldError
					if errors.As(err, &held) {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					holders, claims = holders+1, claims+1
					if holders > 1 {
						t.Errorf("%d have the claim", holders)
					}
					mu.Unlock()
					mu.Lock()
					holders--
					mu.Unlock()
					release()
				}
			})
		}
	}
	all.Wait()
	if claims == 0 {
		t.Error("no claim worked")
	}
}

// TestLocksOfADeadProcess kills a process with a claim: the rollout is free, and the files of
// the process are removed.
func TestLocksOfADeadProcess(t *testing.T) {
	const child = "ROLLOUT_TEST_LOCK"
	if home := os.Getenv(child); home != "" {
		l := rollout.NewLocks(home, "child")
		free(t, l, filepath.Join(home, "a.jsonl"))
		free(t, l, filepath.Join(home, "b.jsonl"))
		fmt.Println("claimed")
		select {}
	}
	home := t.TempDir()
	path := filepath.Join(home, "a.jsonl")
	cmd := exec.Command(os.Args[0], "-test.run=^TestLocksOfADeadProcess$")
	cmd.Env = append(os.Environ(), child+"="+home)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "claimed"; {
	}
	l := newLocks(t, home, "test")
	if err := held(t, l, path); err.PID != cmd.Process.Pid || err.Program != "child" {
		t.Errorf("held: %v, want process %d", err, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if got := l.Holder(path); got != nil {
		t.Errorf("it died: %v", got)
	}
	release := free(t, l, path)
	if got := l.Holder(filepath.Join(home, "b.jsonl")); got != nil {
		t.Errorf("another claim of the dead process became ours: %v", got)
	}
	release()
	for _, name := range []string{"server-dead", "notes"} { // a server that died without a claim, and a file of others
		if err := os.WriteFile(filepath.Join(home, "codex-mcp-locks", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	free(t, newLocks(t, home, "third"), path)()
	files, err := filepath.Glob(filepath.Join(home, "*", "*"))
	if err != nil || len(files) != 4 { // the guard, the notes, the files of l and of the third
		t.Errorf("files %q, %v", files, err)
	}
}

// TestTornClaim checks that an unfinished claim does not count.
func TestTornClaim(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "a.jsonl")
	dead := rollout.NewLocks(home, "dead")
	free(t, dead, path)
	claims, err := filepath.Glob(filepath.Join(home, "*", "rollout-*"))
	if err != nil || len(claims) != 1 {
		t.Fatalf("claims %q, %v", claims, err)
	}
	if err := os.Truncate(claims[0], 20); err != nil {
		t.Fatal(err)
	}
	free(t, newLocks(t, home, "test"), path)()
	if err := dead.Close(); err != nil {
		t.Error(err)
	}
}
