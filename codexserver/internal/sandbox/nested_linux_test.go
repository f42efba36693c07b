package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
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

// TestVanishingRepositories runs commands while repositories in a writable folder come and go,
// as in /tmp on a machine where programs work. Each command runs.
func TestVanishingRepositories(t *testing.T) {
	if !hasNamespaces(t) {
		return
	}
	work := filepath.Join(tree(t, "work"), "work")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			repo := filepath.Join(work, fmt.Sprint("r", i%8))
			if err := errors.Join(os.RemoveAll(repo), os.MkdirAll(filepath.Join(repo, ".git", "hooks"), 0o755)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	defer func() {
		close(stop)
		<-stopped
	}()
	p := pool(t)
	for range 25 {
		c, err := tried[sandbox.TierNamespaces].Like(sandbox.Options{Tier: sandbox.TierNamespaces}).Confine(write(work), work, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := p.Run(t.Context(), proc.Spec{Argv: []string{"true"}, Dir: work, Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.ExitCode != 0 {
			t.Errorf("%d %s", res.ExitCode, res.Aggregated)
		}
	}
}
