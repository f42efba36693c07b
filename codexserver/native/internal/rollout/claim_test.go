package rollout_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
)

// TestClaim claims one rollout by writers of several paths that lead to it.
func TestClaim(t *testing.T) {
	first := create(t)
	link := filepath.Join(t.TempDir(), "link.jsonl")
	if err := os.Symlink(first.Path(), link); err != nil {
		t.Fatal(err)
	}
	second, third := rollout.At(first.Path(), nil), rollout.At(link, nil)
	claim := func(w *rollout.Writer, want error) {
		t.Helper()
		if err := w.Claim(); !errors.Is(err, want) {
			t.Errorf("Claim: %v, want %v", err, want)
		}
	}
	claimed := func(want bool) {
		t.Helper()
		for _, path := range []string{first.Path(), link} {
			if got := rollout.IsClaimed(path); got != want {
				t.Errorf("IsClaimed: %v", got)
			}
		}
	}
	claimed(true) // by Create
	claim(second, rollout.ErrClaimed)
	claim(third, rollout.ErrClaimed)
	if err := first.Item(userMessage("one")); err != nil {
		t.Error(err)
	}
	if err := errors.Join(first.Release(), first.Release()); err != nil {
		t.Error(err)
	}
	claimed(false)
	if err := first.Item(userMessage("two")); err != nil { // not in a turn
		t.Error(err)
	}
	claim(third, nil)
	claimed(true)
	claim(first, rollout.ErrClaimed)
	if err := errors.Join(third.Take(func() error { return nil }), third.Item(userMessage("three")), third.Close()); err != nil {
		t.Error(err)
	}
	claimed(false)
	claim(first, nil)
	if err := first.Check(); !errors.Is(err, rollout.ErrChanged) {
		t.Errorf("Check: %v", err)
	}
	if err := errors.Join(os.Remove(link), first.Release()); err != nil {
		t.Error(err)
	}
	claim(third, nil) // the next write says that nothing is there
	if err := third.Check(); err == nil {
		t.Error("a file that is not there was opened")
	}
}

// TestClaimFollowsThePath moves the claimed file away, and another one to its place: lines go to that one.
func TestClaimFollowsThePath(t *testing.T) {
	w := create(t)
	if err := errors.Join(w.Item(userMessage("one")), replace(w.Path()), w.Item(userMessage("two"))); err != nil {
		t.Fatal(err)
	}
	if texts := load(t, w); len(texts) != 2 {
		t.Errorf("the file has %q", texts)
	}
	if err := os.Remove(w.Path()); err != nil {
		t.Fatal(err)
	}
	if err := w.Item(userMessage("three")); !errors.Is(err, rollout.ErrGone) {
		t.Errorf("Item: %v", err)
	}
}

// TestClaimsExclude claims one rollout many times at once, while others look: one claim at a time works.
func TestClaimsExclude(t *testing.T) {
	w := create(t)
	path := w.Path()
	if err := w.Release(); err != nil {
		t.Fatal(err)
	}
	var holders, claims atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			w := rollout.At(path, nil)
			for range 50 {
				err := w.Claim()
				if errors.Is(err, rollout.ErrClaimed) {
					continue
				}
				if n := holders.Add(1); err != nil || n > 1 {
					t.Errorf("%d have the claim, %v", n, err)
				}
				claims.Add(1)
				holders.Add(-1)
				if err := w.Release(); err != nil {
					t.Error(err)
				}
				rollout.IsClaimed(path)
			}
		})
	}
	all.Wait()
	if claims.Load() == 0 {
		t.Error("no claim worked")
	}
}

// TestClaimOfADeadProcess kills a process with a claim: the rollout is free.
func TestClaimOfADeadProcess(t *testing.T) {
	const child = "ROLLOUT_TEST_CLAIM"
	if path := os.Getenv(child); path != "" {
		w := rollout.At(path, nil)
		if err := w.Claim(); err != nil {
			t.Fatal(err)
		}
		fmt.Println("claimed")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until it is killed; a process that only selects ends as a deadlock
		_ = w.Release()
		return
	}
	w := create(t)
	if err := w.Release(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestClaimOfADeadProcess$")
	cmd.Env = append(os.Environ(), child+"="+w.Path())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "claimed"; {
	}
	if err := w.Claim(); !errors.Is(err, rollout.ErrClaimed) {
		t.Errorf("Claim: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if err := w.Claim(); err != nil {
		t.Error(err)
	}
}
