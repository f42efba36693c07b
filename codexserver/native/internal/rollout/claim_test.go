package rollout_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/internal/testenv"
)

// TestClaim claims one rollout by writers of several paths that lead to it.
func TestClaim(t *testing.T) {
	testenv.NeedsLinks(t)
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
	testenv.NeedsUnix(t, testenv.OpenFiles)
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
