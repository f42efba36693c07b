//go:build unix

package testenv

import (
	"errors"
	"fmt"
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

// Machine is one that tests may run on, as its user has set it up.
type Machine struct {
	Name    string
	environ []string // with @ for the folder of [Furnish], and the variables that stand there
	before  string   // a line of sh, before the command
}

// machines are run together by day, and each alone at night. Together the later one counts.
var machines = []Machine{
	{"keys", []string{
		"OPENAI_API_KEY=sk-user", "OPENAI_BASE_URL=http://127.0.0.1:9/v1", "CODEX_HOME=@/codex",
		"CODEX_API_KEY=k", "CODEX_SANDBOX=seatbelt", "ANTHROPIC_API_KEY=k",
	}, ""},
	{"proxies", []string{
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "ALL_PROXY=http://127.0.0.1:9",
		"http_proxy=http://127.0.0.1:9", "https_proxy=::", "no_proxy=example.com",
	}, ""},
	{"git", []string{
		"GIT_DIR=/no/git", "GIT_WORK_TREE=/no", "GIT_INDEX_FILE=/no/index", "GIT_AUTHOR_DATE=@", "GIT_AUTHOR_NAME=x",
		"GIT_EXTERNAL_DIFF=false", "GIT_PAGER=false", "GIT_EDITOR=false", "GIT_CONFIG_GLOBAL=@/home of é/.gitconfig",
	}, ""},
	{"names", []string{"USER=someone", "LOGNAME=someone", "USERNAME=someone", "HOSTNAME=somewhere", "MAIL=@"}, ""},
	{"no language", []string{"LC_ALL=C", "LANG="}, ""},
	{"languages", []string{"LANG=de_DE.UTF-8", "LC_ALL=de_DE.UTF-8", "LANGUAGE=de"}, ""},
	{"time", []string{"TZ=Pacific/Chatham"}, ""},
	{"terminals", []string{
		"TERM=dumb", "NO_COLOR=1", "CLICOLOR_FORCE=1", "COLUMNS=60", "LINES=9",
		"EDITOR=false", "VISUAL=false", "PAGER=false", "LESS=x",
	}, ""},
	{"shells", []string{"BASH_ENV=@/profile", "ENV=@/profile", "CDPATH=/tmp:/", "SHELL=/bin/false", "PS4=?"}, ""},
	{"python", []string{
		"PYTHONPATH=@/python", "PYTHONSTARTUP=@/python/sitecustomize.py", "PYTHONWARNINGS=error",
		"PYTHONOPTIMIZE=2", "PYTHONIOENCODING=latin-1",
	}, ""},
	{"node", []string{
		"NODE_OPTIONS=--require=@/no.js", "NODE_PATH=@", "NODE_ENV=production",
		"npm_config_registry=http://127.0.0.1:9",
	}, ""},
	{"desktop", []string{
		"XDG_CONFIG_HOME=@/desktop", "XDG_DATA_HOME=@/desktop", "XDG_STATE_HOME=@/desktop", "XDG_CACHE_HOME=@/desktop",
		"XDG_RUNTIME_DIR=@/no",
	}, ""},
	{"logs", []string{"RUST_LOG=trace", "DEBUG=*", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9"}, ""},
	{"programs", []string{"PATH=@/planted:$PATH"}, ""},
	{"modes", nil, "umask 077"},
	{"signals", nil, "trap '' INT HUP QUIT"},
	{"no home", []string{"HOME=/no/home"}, ""},
	{"home", []string{"HOME=@/home of é"}, ""},
	{"temporary files", []string{"TMPDIR=@/a folder with é"}, ""},
	{"a port", nil, ""},
	{"folder", nil, `cd "@/a folder with é/module/$PACKAGE"`},
}

// Machines returns those of users by what tests meet there, and at last "all", which is all of them.
func Machines() []Machine {
	all := Machine{Name: "all"}
	for _, m := range machines {
		all.environ, all.before = append(all.environ, m.environ...), all.before+m.before+"\n"
	}
	return append(machines[:len(machines):len(machines)], all)
}

// Furnish writes into an empty folder what the users of the machines have, and returns the variables with which a go
// command has there what it has here. Somebody listens at the port of Ollama, until end is called.
func Furnish(top string) (environ []string, end func(), err error) {
	names := []string{"GOMOD", "GOCACHE", "GOMODCACHE", "GOPATH", "GOENV"} // the go command has none without a home
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go env: %w", err)
	}
	values := strings.Split(string(out), "\n")
	for i, name := range names[1:] {
		environ = append(environ, name+"="+values[i+1])
	}
	module, folder := filepath.Dir(values[0]), filepath.Join(top, "a folder with é")
	wd, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	pkg, err := filepath.Rel(module, wd)
	if err != nil {
		return nil, nil, err
	}
	environ = append(environ, "PACKAGE="+pkg)
	const settings = "[user]\n\tname = x\n[commit]\n\tgpgSign = true\n[core]\n\thooksPath = /no\n\tpager = false\n" +
		"[init]\n\tdefaultBranch = trunk\n"
	for path, text := range map[string]string{
		"profile":                         "echo the profile\n",
		"python/sitecustomize.py":         "raise SystemExit('the user has another Python')\n",
		"desktop/git/config":              settings,
		"home of é/.gitconfig":            settings,
		"home of é/.npmrc":                "registry=http://127.0.0.1:9\n",
		"home of é/.bashrc":               "echo the profile\n",
		"home of é/.profile":              "echo the profile\n",
		"home of é/.bash_profile":         "echo the profile\n",
		"home of é/.codex/config.toml":    "model = \"of the user\"\nmodel_provider = \"nobody\"\n",
		"home of é/.codex/codex-mcp.toml": "shared = true\n",
	} {
		path = filepath.Join(top, path)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	planted := filepath.Join(top, "planted")
	err = errors.Join(err, os.Mkdir(folder, 0o755), os.Mkdir(planted, 0o755),
		os.Symlink(module, filepath.Join(folder, "module")))
	for _, name := range []string{"codex-mcp", "codex", "npx", "bwrap", "rg", "gofmt"} {
		path := filepath.Join(planted, name)
		err = errors.Join(err, WriteProgram(path, []byte("#!/bin/sh\necho this is another $0; exit 7\n")))
	}
	end = func() {}
	if l, err := net.Listen("tcp", "127.0.0.1:11434"); err == nil { // as Ollama does, unless it runs
		end = func() { l.Close() }
	}
	return environ, end, err
}

// Command returns a command as the user of the machine runs it, with a folder of [Furnish] and its variables.
func (m Machine) Command(top string, environ []string, name string, args ...string) *exec.Cmd {
	script := strings.ReplaceAll(m.before, "@", top) + "\n" + `exec "$0" "$@"`
	cmd := exec.Command("sh", append([]string{"-ec", script, name}, args...)...)
	cmd.Env = append(os.Environ(), environ...)
	for _, entry := range m.environ {
		cmd.Env = append(cmd.Env, os.Expand(strings.ReplaceAll(entry, "@", top), os.Getenv))
	}
	return cmd
}

// Play runs tests of this binary again, as on the machines of its users: those whose names match a pattern.
func Play(t *testing.T, tests string) {
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	environ, end, err := Furnish(top)
	must.OK(t, err)
	defer end()
	for _, m := range Machines() {
		if m.Name != "all" && !nightly.Tests() {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			out, err := m.Command(top, environ, os.Args[0], "-test.run", tests, "-test.short",
				"-test.v").CombinedOutput()
			if found := regexp.MustCompile(`(?m)^--- (PASS|SKIP)`).FindAll(out, -1); err != nil || len(found) == 0 {
				t.Errorf("%v, %d tests passed\n%.8000s", err, len(found), out)
			}
		})
	}
}
