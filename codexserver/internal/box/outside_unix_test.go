//go:build unix

package box_test

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
)

// TestOutside has commands that a rule lets run outside the sandbox, where commands have planted programs.
func TestOutside(t *testing.T) {
	top := boxtest.Folder(t)
	in := func(name string) string { return filepath.Join(top, name) }
	for name, by := range map[string]string{
		"work/run.sh": "", "work/node_modules/.bin/tool": "", "work/ls": "", "work/sub/x": "", "sys/tool": "", "sys/own": "", "late/own": "", "sys/zsh": "", "sys/byenv": "/usr/bin/env tool",
		"sys/shim": in("sys/byplanted"), "sys/loop": in("sys/loop"), "sys/wrapped": in("sys/own"), "sys/missing": "/usr/bin/env nosuchprogram", "sys/byplanted": in("work/run.sh"), "sys/unclear": "/usr/bin/env -S A=1 tool",
	} {
		boxtest.Lay(t, top, name+"=#!"+cmp.Or(by, "/bin/sh")+"\n")
	}
	boxtest.Lay(t, top, "sys/linked -> ../work/run.sh", "alias -> work")
	env := []string{"PATH=node_modules/.bin:" + in("work/node_modules/.bin") + ":" + in("alias/sub") + ":" + in("sys") + ":" + in("late") + ":/usr/bin:/bin", "HOME=" + top}
	path := in("sys") + ":" + in("late") + ":/usr/bin:/bin"
	for _, tt := range []struct {
		argv string // words after bars
		want string // the same; "" if it must not run
	}{
		{"tool|x", in("sys/tool") + "|x"}, {in("sys/own"), in("sys/own")}, {"own", in("sys/own")}, {"byenv", in("sys/byenv")}, {"run.sh", ""},
		{"./run.sh", ""}, {in("work/run.sh"), ""}, {in("alias/run.sh"), ""},
		{"linked", ""}, // the first with that name
		{"missing", ""}, {"byplanted", ""}, {"unclear", ""}, {"shim", ""}, {"loop", ""}, {"wrapped", in("sys/wrapped")}, {"nosuchprogram", ""},
		{"../sys/own", ""}, // by a folder that commands can exchange
		{"sh|-c|tool x", "/bin/sh|-c|tool x"},
		{"bash|-lc|tool && own", "/bin/bash|-c|tool && own"},
		{"zsh|-lc|tool && own", "/bin/zsh|-fc|tool && own"},
		{"bash|-lc|cd sub && tool", "/bin/bash|-c|cd sub && tool"},
		{"bash|-lc|cd sub && ./x", ""}, {"bash|-lc|tool && ./run.sh", ""}, {"bash|-lc|linked", ""}, {"bash|-lc|byplanted", ""},
		{"./bash|-c|tool", ""},
	} {
		p := &box.Programs{Temporary: []string{}}
		p.Add(in("work"))
		words := strings.Split(tt.argv, "|")
		commands := [][]string{words}
		if len(words) == 3 { // a script
			commands = nil
			for one := range strings.SplitSeq(words[2], " && ") {
				commands = append(commands, strings.Fields(one))
			}
		}
		argv, environ, err := p.Outside(words, commands, in("work"), env)
		if err == nil && strings.HasSuffix(argv[0], "sh") { // /bin may be a link to /usr/bin
			argv[0] = "/bin/" + filepath.Base(argv[0])
		}
		if got := strings.Join(argv, "|"); got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s: %q, %v, want %q", tt.argv, got, err, tt.want)
		}
		if err == nil && !slices.Contains(environ, "PATH="+path) {
			t.Errorf("%s: the environment is %q", tt.argv, environ)
		}
	}
	// A folder that became writable meanwhile, and one of another conversation.
	p := &box.Programs{Temporary: []string{}}
	for _, folders := range [][]string{nil, {in("sys")}} {
		if folders == nil {
			p.Add(in("sys"))
		}
		if argv, _, err := p.Outside([]string{"own"}, [][]string{{"own"}}, in("work"), env, folders...); err != nil || argv[0] != in("late/own") {
			t.Errorf("%q, %v", argv, err)
		}
		p = &box.Programs{Temporary: []string{}}
	}
}

// TestNamesProgram has variables that a command outside the sandbox does not get, and those that it needs.
func TestNamesProgram(t *testing.T) {
	for name := range strings.FieldsSeq(`GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_ASKPASS SSH_ASKPASS GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_GLOBAL GIT_EXEC_PATH
		GIT_EDITOR GIT_PAGER GIT_DIR EDITOR VISUAL PAGER MANPAGER KUBE_EDITOR LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV ENV SHELLOPTS
		BASH_FUNC_x%% PYTHONPATH PYTHONSTARTUP NODE_OPTIONS NODE_PATH PERL5LIB PERL5OPT PERLLIB RUBYOPT RUBYLIB PROMPT_COMMAND RSYNC_RSH_COMMAND RUSTC_WRAPPER
		JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS LESSOPEN BROWSER SHELL npm_config_script_shell GOFLAGS SUDO_ASKPASS`) {
		if !box.NamesProgram(name) {
			t.Errorf("%s stays", name)
		}
	}
	for name := range strings.FieldsSeq("HOME USER LANG LC_ALL TERM TZ TMPDIR SSH_AUTH_SOCK SSH_AGENT_PID HTTPS_PROXY no_proxy KUBECONFIG AWS_PROFILE GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL XDG_RUNTIME_DIR PATH") {
		if box.NamesProgram(name) {
			t.Errorf("%s goes", name)
		}
	}
}
