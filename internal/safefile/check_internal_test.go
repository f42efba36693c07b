package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

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

// TestAgain has files that others have open for a while.
func TestAgain(t *testing.T) {
	busy, other := errors.New("busy"), errors.New("other")
	for _, tt := range []struct {
		name string
		open time.Duration // how long the file is
		then error
		want error
	}{
		{"a moment", 300 * time.Millisecond, nil, nil},
		{"and then it fails", time.Millisecond, other, other},
		{"not at all", 0, other, other},
		{"always", time.Hour, nil, busy},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			err := again(func() error {
				if time.Since(begin) < tt.open {
					return busy
				}
				return tt.then
			}, func(err error) bool { return errors.Is(err, busy) })
			if took := time.Since(begin); !errors.Is(err, tt.want) || took > min(2*tt.open, 1100*time.Millisecond) {
				t.Errorf("%s: %v after %v", tt.name, err, took)
			}
		})
	}
}
