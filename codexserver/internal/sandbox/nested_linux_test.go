package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

// TestHiddenRepository checks that a command cannot hide a repository from the search by the
// mode of a folder: then nothing runs in the tier namespaces. Root can read every folder.
func TestHiddenRepository(t *testing.T) {
	if os.Getuid() == 0 || !hasNamespaces(t) {
		return
	}
	base := tree(t, "work/hidden/repo/.git/hooks")
	work := filepath.Join(base, "work")
	confine := func(tier sandbox.Tier) error {
		_, err := sandbox.New(sandbox.Options{Tier: tier}).Confine(write(), work, nil)
		return err
	}
	for mode, hides := range map[os.FileMode]bool{0o700: false, 0o600: true, 0o300: true, 0o100: true, 0: true} {
		if err := os.Chmod(filepath.Join(work, "hidden"), mode); err != nil {
			t.Fatal(err)
		}
		if err := confine(sandbox.TierNamespaces); errors.Is(err, sandbox.ErrUnavailable) != hides {
			t.Errorf("mode %o: %v", mode, err)
		}
		if err := confine(sandbox.TierThread); err != nil {
			t.Errorf("tier thread, mode %o: %v", mode, err)
		}
	}
	if err := os.Chmod(filepath.Join(work, "hidden"), 0o700); err != nil {
		t.Fatal(err)
	}
}
