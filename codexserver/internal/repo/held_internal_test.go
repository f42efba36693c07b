package repo

import (
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
