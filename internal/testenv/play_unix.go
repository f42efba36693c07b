//go:build unix

package testenv

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// machine is one that tests may run on: the environment that a user has there, with @ for a folder of the test.
type machine struct {
	name    string
	environ []string
	before  string // a line of sh, before the tests
}

// machines are run together by day, and each alone at night.
var machines = []machine{
	{"keys", []string{"OPENAI_API_KEY=sk-user", "OPENAI_BASE_URL=http://127.0.0.1:9/v1", "CODEX_HOME=@/codex", "CODEX_API_KEY=k", "CODEX_SANDBOX=seatbelt", "ANTHROPIC_API_KEY=k"}, ""},
	{"proxies", []string{"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "ALL_PROXY=http://127.0.0.1:9", "http_proxy=http://127.0.0.1:9", "https_proxy=::", "no_proxy=example.com"}, ""},
	{"git", []string{"GIT_DIR=/no/git", "GIT_WORK_TREE=/no", "GIT_INDEX_FILE=/no/index", "GIT_AUTHOR_DATE=@", "GIT_EXTERNAL_DIFF=false", "GIT_CONFIG_GLOBAL=@/gitconfig"}, ""},
	{"languages", []string{"LANG=de_DE.UTF-8", "LC_ALL=de_DE.UTF-8", "LANGUAGE=de"}, ""},
	{"terminals", []string{"TERM=dumb", "NO_COLOR=1", "EDITOR=false", "VISUAL=false", "PAGER=false", "COLUMNS=20", "CLICOLOR_FORCE=1"}, ""},
	{"shells", []string{"BASH_ENV=@/profile", "ENV=@/profile", "CDPATH=/tmp:/", "SHELL=/bin/false"}, ""},
	{"programs", []string{"PATH=@/planted:" + os.Getenv("PATH")}, ""},
	{"modes", nil, "umask 077"},
	{"home", []string{"HOME=/no/home"}, ""},
	{"temporary files", []string{"TMPDIR=@/a folder with é"}, ""},
	{"a port", nil, ""},
	{"folder", nil, `cd "@/a folder with é/module/$PACKAGE"`},
}

// Play runs tests of this binary again, as on the machines of its users: those whose names match a pattern.
func Play(t *testing.T, tests string) {
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	out := must.Get(exec.Command("go", "env", "GOMOD", "GOCACHE", "GOMODCACHE").Output())(t) // the go command has none without a home
	paths := strings.Split(string(out), "\n")
	module, folder := filepath.Dir(paths[0]), filepath.Join(top, "a folder with é")
	wd, _ := os.Getwd()
	pkg, _ := filepath.Rel(module, wd)
	must.OK(t, os.Mkdir(folder, 0o755), os.Mkdir(filepath.Join(top, "planted"), 0o755), os.Symlink(module, filepath.Join(folder, "module")))
	for _, name := range []string{"codex-mcp", "codex", "npx", "node", "bwrap", "rg", "gofmt"} {
		must.OK(t, WriteProgram(filepath.Join(top, "planted", name), []byte("#!/bin/sh\necho this is another $0; exit 7\n")))
	}
	for name, text := range map[string]string{"gitconfig": "[commit]\n\tgpgSign = true\n[core]\n\thooksPath = /no\n[init]\n\tdefaultBranch = trunk\n", "profile": "echo the profile\n"} {
		must.OK(t, os.WriteFile(filepath.Join(top, name), []byte(text), 0o600))
	}
	if l, err := net.Listen("tcp", "127.0.0.1:11434"); err == nil { // as Ollama does
		defer l.Close()
	}
	play := func(m machine) {
		t.Run(m.name, func(t *testing.T) {
			cmd := exec.Command("sh", "-ec", strings.ReplaceAll(m.before, "@", top)+"\n"+`exec "$0" "$@"`, os.Args[0], "-test.run", tests, "-test.short", "-test.v")
			cmd.Env = append(os.Environ(), "PACKAGE="+pkg, "GOCACHE="+paths[1], "GOMODCACHE="+paths[2])
			for _, entry := range m.environ {
				cmd.Env = append(cmd.Env, strings.ReplaceAll(entry, "@", top))
			}
			out, err := cmd.CombinedOutput()
			if found := regexp.MustCompile(`(?m)^--- (PASS|SKIP)`).FindAll(out, -1); err != nil || len(found) == 0 {
				t.Errorf("%v, %d tests passed\n%.8000s", err, len(found), out)
			}
		})
	}
	all := machine{name: "all"}
	for _, m := range machines {
		if all.environ, all.before = append(all.environ, m.environ...), all.before+m.before+"\n"; nightly.Tests() {
			play(m)
		}
	}
	play(all)
}
