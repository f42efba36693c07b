package safefile_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

func TestLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for _, tt := range []struct {
		name          string
		first, second func(syscall.Conn) error
		want          error
	}{
		{"alone twice", safefile.Lock, safefile.Lock, safefile.ErrLocked},
		{"alone, then shared", safefile.Lock, safefile.Share, safefile.ErrLocked},
		{"shared, then alone", safefile.Share, safefile.Lock, safefile.ErrLocked},
		{"shared twice", safefile.Share, safefile.Share, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one, two := open(t, path), open(t, path)
			defer two.Close()
			if err := tt.first(one); err != nil {
				t.Fatal(err)
			}
			if err := tt.second(two); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if err := one.Close(); err != nil {
				t.Fatal(err)
			}
			if err := tt.second(two); err != nil {
				t.Errorf("after the first was closed: %v", err)
			}
			if err := safefile.Lock(one); err == nil {
				t.Error("a closed file was locked")
			}
		})
	}
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
