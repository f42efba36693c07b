package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestSettings compares the settings that are read from configurations with those that git reads.
func TestSettings(t *testing.T) {
	for name, text := range map[string]string{
		"empty":              "",
		"as git writes it":   "[core]\n\trepositoryformatversion = 0\n\tfilemode = false\n\tbare = true\n[remote \"origin\"]\n\turl = https://host.example/a/b.git\n",
		"letter case":        "[Core]\nFileMode = TRUE\nautoCRLF=input\n",
		"two values":         "[core]\neol = lf\n[user]\nname = x\n[core]\neol = crlf\n",
		"spaces":             "  [core]  \n\n \t eol =   lf  \n",
		"quotes":             "[core]\n\texcludesFile = \"/a # b\"\n",
		"comments":           "[core]\n\teol = lf ; as always\n\t# autocrlf = true\n\t; bare = true\n\tignorecase = true # x\n",
		"carriage returns":   "[core]\r\n\teol = lf\r\n",
		"a key of a section": "[core] filemode = false\n",
		"a key alone":        "[core]\n\tbare\n",
		"no value":           "[core]\n\texcludesfile =\n",
		"no end of the line": "[extensions]\nobjectformat = sha256",
		"other keys":         "[core]\n\teolx = lf\n\tx-eol = lf\n[alias]\n\tx = !eol = lf\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			must.OK(t, os.WriteFile(file, []byte(text), 0o600))
			m := &mirror{settings: map[string]string{}}
			must.OK(t, m.read(file))
			for _, key := range []string{"core.filemode", "core.autocrlf", "core.eol", "core.bare", "core.ignorecase", "core.excludesfile", "extensions.objectformat"} {
				want, _ := exec.CommandContext(t.Context(), "git", "config", "--file", file, "--includes", key).Output() // fails without a value
				if _, name, _ := strings.Cut(key, "."); m.settings[name] != strings.TrimSpace(string(want)) && !(name == "bare" && m.settings[name] == "true" && string(want) == "\n") {
					t.Errorf("%s is %q, want %q", key, m.settings[name], want)
				}
			}
		})
	}
}
