package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// MakeRepo makes an empty repository: the least that git and this package take for one.
func MakeRepo(t testing.TB, dir string) {
	t.Helper()
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n", "refs/heads/": "", "objects/info/": "", "objects/pack/": ""} {
		path := filepath.Join(dir, ".git", filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
