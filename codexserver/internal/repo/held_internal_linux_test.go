package repo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSilent has configurations of the user that say where patterns are, or could.
func TestSilent(t *testing.T) {
	for name, tt := range map[string]struct {
		file, text string
		env        []string
		want       bool
	}{
		"nothing":              {want: true},
		"a name":               {file: ".gitconfig", text: "[user]\n\tname = x\n", want: true},
		"patterns":             {file: ".gitconfig", text: "[core]\n\tExcludesFile = x\n"},
		"an include":           {file: ".gitconfig", text: "[include]\n\tpath = x\n"},
		"a condition":          {file: ".config/git/config", text: "[includeIf \"gitdir:/\"]\n\tpath = x\n"},
		"another folder":       {file: "xdg/git/config", text: "[core]\n\texcludesFile = x\n", env: []string{"XDG_CONFIG_HOME=HOME/xdg"}},
		"another file":         {file: "x", text: "[core]\n\texcludesFile = x\n", env: []string{"GIT_CONFIG_GLOBAL=HOME/x"}},
		"not the usual file":   {file: ".gitconfig", text: "[core]\n\texcludesFile = x\n", env: []string{"GIT_CONFIG_GLOBAL=HOME/x"}, want: true},
		"the last value":       {file: "x", text: "[include]\n", env: []string{"GIT_CONFIG_GLOBAL=HOME/x", "GIT_CONFIG_GLOBAL=" + os.DevNull}, want: true},
		"the system's file":    {file: "x", text: "[include]\n", env: []string{"GIT_CONFIG_SYSTEM=HOME/x"}},
		"a file like no other": {file: ".gitconfig/x"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			p := program{path: filepath.Join(home, "bin", "git"), env: []string{"HOME=" + home, "GIT_CONFIG_SYSTEM=" + os.DevNull}}
			for _, entry := range tt.env {
				p.env = append(p.env, strings.ReplaceAll(entry, "HOME/", home+"/"))
			}
			if tt.file != "" {
				path := filepath.Join(home, tt.file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := p.silent("excludesfile"); got != tt.want {
				t.Errorf("silent: %v", got)
			}
		})
	}
}

// TestCachedTree compares the tree that an index has with the one that git writes.
func TestCachedTree(t *testing.T) {
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q")
	for _, name := range []string{"a", "b/c", "b/d/e"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		change []string
		known  bool
	}{
		{[]string{"add", "."}, false},
		{[]string{"commit", "-qm", "first"}, true},
		{[]string{"rm", "-q", "--cached", "b/d/e"}, false},
		{[]string{"read-tree", "HEAD"}, true},
	} {
		gitIn(t, dir, tt.change...)
		data, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
		if err != nil {
			t.Fatal(err)
		}
		all, ok := parseIndex(string(data), 20)
		if !ok {
			t.Fatal("the index cannot be read")
		}
		want := ""
		if tt.known {
			want = strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD^{tree}"))
		}
		if got := cachedTree(string(data), all); got != want {
			t.Errorf("after %v: %q, want %q", tt.change, got, want)
		}
	}
}
