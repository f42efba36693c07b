//go:build unix

package safefile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// TestSecret loads secrets that are not there yet, there, and not secret.
func TestSecret(t *testing.T) {
	const secret = "a secret"
	write := func(mode os.FileMode) func(string) error {
		return func(path string) error {
			if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
				return err
			}
			return os.Chmod(path, mode)
		}
	}
	for name, tt := range map[string]struct {
		make func(path string) error
		want string // "" is an error
	}{
		"none":                         {func(string) error { return nil }, "a new one"},
		"no folder":                    {func(path string) error { return os.Remove(filepath.Dir(path)) }, "a new one"},
		"there":                        {write(0o600), secret},
		"that nobody can write":        {write(0o400), secret},
		"that a group can read":        {write(0o640), ""},
		"that others can read":         {write(0o604), ""},
		"that others can write":        {write(0o602), ""},
		"a link":                       {func(path string) error { return os.Symlink("elsewhere", path) }, ""},
		"a folder":                     {func(path string) error { return os.Mkdir(path, 0o700) }, ""},
		"a longer one":                 {func(path string) error { return os.WriteFile(path, []byte("0123456789"), 0o600) }, ""},
		"one as long as it may be":     {func(path string) error { return os.WriteFile(path, []byte("012345678"), 0o600) }, "012345678"},
		"of another process meanwhile": {nil, secret},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "folder", "key")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			create := func() []byte { return []byte("a new one") }
			if tt.make == nil {
				create = func() []byte {
					if err := write(0o600)(path); err != nil {
						t.Error(err)
					}
					return []byte("a late one")
				}
			} else if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got, err := safefile.LoadSecret(path, 9, create); string(got) != tt.want || (err == nil) != (tt.want != "") {
					t.Errorf("%q, %v", got, err)
				}
			}
			if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
				t.Errorf("left %v, %v", left, err)
			}
			if info, err := os.Stat(path); tt.want == "a new one" && (err != nil || info.Mode() != 0o600) {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
}
