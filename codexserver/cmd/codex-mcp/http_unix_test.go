//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHTTPTokenFiles checks that a token is refused if others could read or write its file.
func TestHTTPTokenFiles(t *testing.T) {
	token := []byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789\n")
	for name, make := range map[string]func(dir, file string) error{
		"readable by others": func(_, file string) error { return os.WriteFile(file, token, 0o644) },
		"a link": func(dir, file string) error {
			if err := os.WriteFile(filepath.Join(dir, "other"), token, 0o600); err != nil {
				return err
			}
			return os.Symlink("other", file)
		},
		"a folder": func(_, file string) error { return os.Mkdir(file, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			dir := filepath.Join(home, "codex-mcp")
			file := filepath.Join(dir, "http-token")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := make(dir, file); err != nil {
				t.Fatal(err)
			}
			if name == "readable by others" {
				if err := os.Chmod(file, 0o644); err != nil { // regardless of the umask
					t.Fatal(err)
				}
			}
			if token, err := loadToken(home); err == nil {
				t.Errorf("the token is %q", token)
			}
		})
	}
	home := t.TempDir()
	if _, err := loadToken(home); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(filepath.Join(home, "codex-mcp", "http-token")); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
