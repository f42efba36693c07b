package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestCheck has files that were replaced between the look at them and the opening.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	one, other := filepath.Join(dir, "one"), filepath.Join(dir, "other")
	for _, path := range []string{one, other} {
		must.OK(t, os.WriteFile(path, nil, 0o600))
	}
	before := must.Get(os.Lstat(one))(t)
	var kind *KindError
	for path, want := range map[string]func(error) bool{
		one:   func(err error) bool { return err == nil },
		other: func(err error) bool { return errors.Is(err, ErrReplaced) },
		dir:   func(err error) bool { return errors.As(err, &kind) },
	} {
		f := must.Get(os.Open(path))(t)
		got, err := check(f, path, before)
		if !want(err) || (got == nil) != (err != nil) {
			t.Errorf("%s: %v, %v", path, got, err)
		}
		if err := f.Close(); (err == nil) != (got != nil) {
			t.Errorf("%s: closed again: %v", path, err)
		}
	}
}
