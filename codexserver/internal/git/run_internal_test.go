package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRunBounds checks that a long output is cut off if requested, and else an error.
func TestRunBounds(t *testing.T) {
	dir := t.TempDir()
	p := must.Get(Scratch{Dir: dir}.find(dir))(t)
	long := "[a]\n\tb = " + strings.Repeat("x", 100_000) + "\n"
	confined, err := p.programs.Confine()
	if err != nil {
		t.Skip(err)
	}
	c := call{dir: dir, confined: confined, stdin: long}
	if out, err := p.run(t.Context(), c, "config", "--file=-", "--list"); err != nil || len(out) != 100_005 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	c.cut = 1000
	if out, err := p.run(t.Context(), c, "config", "--file=-", "--list"); err != nil || out != "a.b="+strings.Repeat("x", 996) {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	c.cut = 0
	c.stdin = strings.Repeat(long, 700)
	if out, err := p.run(t.Context(), c, "config", "--file=-", "--list"); err == nil || !strings.Contains(err.Error(), "prints more than 64 MiB") {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

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
			dir := t.TempDir()
			m := &mirror{root: dir, gitDir: filepath.Dir(file), commonDir: filepath.Dir(file), settings: map[string]string{}, program: must.Get(Scratch{}.find(dir))(t)}
			must.OK(t, m.ownSettings(t.Context()))
			for _, key := range []string{"core.filemode", "core.autocrlf", "core.eol", "core.bare", "core.ignorecase", "core.excludesfile", "extensions.objectformat"} {
				want, _ := exec.CommandContext(t.Context(), "git", "config", "--file", file, "--includes", key).Output() // fails without a value
				if got := m.settings[key]; got != strings.TrimSpace(string(want)) && !(got == "true" && string(want) == "\n") {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
		})
	}
}

// TestForeign has git refuse the repository of another user, and then trust it as the error says.
func TestForeign(t *testing.T) {
	dir := filepath.Join(must.Get(filepath.EvalSymlinks(t.TempDir()))(t), "a b")
	must.OK(t, exec.Command("git", "init", "-q", dir).Run())
	global := filepath.Join(t.TempDir(), "gitconfig")
	p := must.Get(Scratch{Dir: t.TempDir()}.find(dir))(t)
	confined, err := p.programs.Confine()
	if err != nil {
		t.Skip(err)
	}
	c := call{dir: dir, confined: confined, env: []string{"GIT_TEST_ASSUME_DIFFERENT_OWNER=1", "GIT_CONFIG_GLOBAL=" + global}}
	_, err = p.run(t.Context(), c, "status")
	must.Fail(t, "of another user", "git status: the repository belongs to another user; if you trust it, run git config --global --add safe.directory '"+dir+"'", err)
	if strings.Contains(err.Error(), "exit status") {
		t.Error(err)
	}
	must.OK(t, os.WriteFile(global, []byte("[safe]\n\tdirectory = "+dir+"\n"), 0o600))
	_, err = p.run(t.Context(), c, "status")
	must.OK(t, err)
}
