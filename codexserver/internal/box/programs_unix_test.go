//go:build unix

package box_test

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// bench is a folder with programs. The folder w is writable.
type bench struct {
	t        *testing.T
	top      string
	programs *box.Programs
}

func newBench(t *testing.T) *bench {
	t.Helper()
	top := boxtest.Folder(t)
	b := &bench{t, top, &box.Programs{Temporary: []string{}}}
	boxtest.Lay(t, top, "w/bin/", "w2/", "safe/", "other/")
	b.programs.Add(b.at("w"), b.at("w2"))
	return b
}

// finds reports whether a program is found, by its path or in a PATH. If not it is refused.
func finds(t *testing.T, p *box.Programs, name, dir, path string) bool {
	t.Helper()
	_, err := p.Find(name, dir, path)
	must.Equal(t, name+" is refused", err != nil, refused(err))
	return err == nil
}

// refused reports whether a program does not start because commands can write it.
func refused(err error) bool {
	var e *box.ProgramError
	return errors.As(err, &e)
}

func (b *bench) at(name string) string { return filepath.Join(b.top, name) }

// sh runs a script in the folder. Its function program makes a program.
func (b *bench) sh(script string) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "sh", "-ec", `program() { printf '#!/bin/sh\necho %s "$@"\n' "$1" >"$1"; chmod +x "$1"; }; `+script)
	cmd.Dir = b.top
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%s: %v: %s", script, err, out)
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name   string
		lay    string
		search string // a PATH
		find   string
		want   string // "" refuses
	}{
		{"safe", "program safe/git", "safe", "git", "safe/git"},
		{"planted first", "program safe/git; program w/bin/git", "w/bin:safe", "git", "safe/git"},
		{"only planted", "program w/bin/git", "w/bin", "git", ""},
		{"a folder that is a link to a writable one", "program w/bin/git; ln -s ../w/bin safe/bin; program other/git", "safe/bin:other", "git", "other/git"},
		{"a folder that a writable link leads to", "program safe/git; ln -s ../safe w/link; program other/git", "w/link:other", "git", "other/git"},
		{"a link to a writable program", "program w/git; ln -s ../w/git safe/git; program other/git", "safe:other", "git", "other/git"},
		{"a link by way of a writable folder", "program safe/real; ln -s ../safe/real w/hop; ln -s ../w/hop safe/git; program other/git", "safe:other", "git", "other/git"},
		{"a link that leads back out", "program safe/real; ln -s ../w/../safe/real safe/git; program other/git", "safe:other", "git", "other/git"},
		{"a loop of links", "ln -s git safe/git; program other/git", "safe:other", "git", "other/git"},
		{"a relative folder", "program other/git", ".:w/../safe:other", "git", "other/git"},
		{"another name of the folder", "program w/bin/git; program other/git", "w/../w/bin/:other", "git", "other/git"},
		{"by its path", "program safe/git", "", "safe/git", "safe/git"},
		{"by a writable path", "program w/bin/git", "", "w/bin/git", ""},
		{"by the path of a link", "program w/git; ln -s ../w/git safe/git", "", "safe/git", ""},
		{"a moved folder", "program w/bin/git; mv w moved; mkdir w; program other/git", "moved/bin:other", "git", "other/git"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.sh(tt.lay)
			t.Chdir(b.top)
			var path []string
			for folder := range strings.SplitSeq(tt.search, ":") {
				if folder != "." {
					folder = b.top + "/" + folder
				}
				path = append(path, folder)
			}
			got, err := b.programs.Find(tt.find, b.top, strings.Join(path, ":"))
			if tt.want == "" && !refused(err) || tt.want != "" && (err != nil || got != b.at(tt.want)) {
				t.Errorf("%s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// TestStartAgain starts a program whose folder becomes writable later.
func TestStartAgain(t *testing.T) {
	b := newBench(t)
	b.sh("program safe/tool; ln -s ../safe other/link")
	path := must.Get(b.programs.Find("tool", "", b.at("other/link")))(t)
	started := 0
	start := func() error {
		return b.programs.Start(exec.CommandContext(t.Context(), path), func() error { started++; return nil })
	}
	must.Check(t, start())
	b.programs.Given(b.at("other"))
	if err := start(); !refused(err) || started != 1 {
		t.Errorf("%v after %d starts", err, started)
	}
	for path, want := range map[string]bool{"safe/tool": false, "other/link/tool": true, "w/x": true, "safe/missing": true} {
		must.Equal(t, path+" is writable", want, b.programs.Writable(b.at(path)))
	}
	_, err := b.programs.Find("safe/missing", b.top, "")
	must.Equal(t, "a missing program is not there", true, errors.Is(err, fs.ErrNotExist))
	_, err = b.programs.Find("missing", b.top, b.at("safe"))
	must.Equal(t, "a missing program is not found", true, errors.Is(err, exec.ErrNotFound))
	more := &box.Programs{Temporary: []string{}, More: b.programs.Folders}
	must.Equal(t, "in a folder of More", false, finds(t, more, "tool", "", b.at("other/link")))
}

// TestMovedFolders checks that a folder stays writable wherever it is moved, and so does the one that takes its name.
func TestMovedFolders(t *testing.T) {
	b := newBench(t)
	for _, moved := range []string{"first", "second"} {
		b.programs.Add(b.at("w"))
		b.sh("mv w " + moved + "; mkdir w; cd " + moved + "; program tool")
		must.Equal(t, moved, false, finds(t, b.programs, moved+"/tool", b.top, ""))
	}
}

// TestInterpreter starts scripts whose interpreter env would search.
func TestInterpreter(t *testing.T) {
	for _, tt := range []struct {
		name, lay string
		want      string // the output, "" if it is refused
	}{
		{"safe", "printf '#!/usr/bin/env tool\n' >safe/script; program safe/tool", "safe/tool SCRIPT x"},
		{"planted", "printf '#!/usr/bin/env tool\n' >safe/script; program safe/tool; program w/bin/tool", "safe/tool SCRIPT x"},
		{"only planted", "printf '#!/usr/bin/env tool\n' >safe/script; program w/bin/tool", ""},
		{"with words", "printf '#!/usr/bin/env -S tool -y\n' >safe/script; program safe/tool; program w/bin/tool", "safe/tool -y SCRIPT x"},
		{"with a PATH", "printf '#!/usr/bin/env -S PATH=/x tool\n' >safe/script; program safe/tool; mkdir safe/PATH=; program safe/PATH=/x", ""},
		{"with an option", "printf '#!/usr/bin/env -i\n' >safe/script; program safe/tool; cp safe/tool safe/-i", ""},
		{"without a word", "printf '#!/usr/bin/env\n' >safe/script", ""},
		{"a long script", "{ printf '#!/usr/bin/env tool\n'; printf '# %300s\n' x; } >safe/script; program safe/tool; program w/bin/tool", "safe/tool SCRIPT x"},
		{"a binary", "cp /usr/bin/printf safe/script", "x"},
		{"env itself planted", "printf '#!%s/w/bin/env tool\n' \"$PWD\" >safe/script; program safe/tool; cp safe/tool w/bin/env", ""},
		{"planted by its path", "printf '#!%s/w/bin/tool\n' \"$PWD\" >safe/script; program w/bin/tool", ""},
		{"a script that env searches", "printf '#!/usr/bin/env shim\n' >safe/script; printf '#!/usr/bin/env tool\n' >safe/shim; chmod +x safe/shim; program safe/tool; program w/bin/tool", "safe/tool safe/shim SCRIPT x"},
		{"a script by its path", "printf '#!%s/safe/shim\n' \"$PWD\" >safe/script; printf '#!/bin/sh\necho \"$@\"' >safe/shim; chmod +x safe/shim", "SCRIPT x"},
		{"planted behind a script", "printf '#!%s/safe/shim\n' \"$PWD\" >safe/script; printf '#!%s/w/bin/tool\n' \"$PWD\" >safe/shim; chmod +x safe/shim; program w/bin/tool", ""},
		{"env behind a script", "printf '#!%s/safe/shim\n' \"$PWD\" >safe/script; printf '#!/usr/bin/env tool\n' >safe/shim; chmod +x safe/shim; program w/bin/tool; program safe/tool", ""},
		{"itself", "printf '#!%s/safe/script\n' \"$PWD\" >safe/script", ""},
		{"not a script", "program w/bin/tool; program safe/script", "safe/script x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.sh(tt.lay + "; chmod +x safe/script")
			cmd := exec.CommandContext(t.Context(), b.at("safe/script"), "x")
			cmd.Env = []string{"PATH=" + b.at("w/bin") + ":" + b.at("safe") + ":/usr/bin:/bin"}
			var out strings.Builder
			cmd.Stdout = &out
			err := b.programs.Start(cmd, cmd.Start)
			if err == nil {
				err = cmd.Wait()
			}
			got := strings.TrimSpace(strings.ReplaceAll(out.String(), b.at("safe/script"), "SCRIPT"))
			got = strings.ReplaceAll(got, b.top+"/", "")
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestEnviron(t *testing.T) {
	b := newBench(t)
	b.sh("ln -s w/bin link")
	path := strings.Join([]string{b.at("w/bin"), ".", b.at("safe"), b.at("link"), b.at("missing"), "/usr/bin"}, ":")
	env, was := b.programs.Environ([]string{"PATH=/x", "A=b", "PATH=" + path, "C=d", "PATH"})
	must.Equal(t, "the environment and the PATH that it had", [][]string{{"A=b", "C=d", "PATH=" + b.at("safe") + ":/usr/bin"}, {path}}, [][]string{env, {was}})
	for _, path := range []string{"", ".:" + b.at("w/bin")} { // an empty PATH would be the working folder
		env, _ := b.programs.Environ([]string{"PATH=" + path})
		must.Equal(t, "without a folder", []string{"PATH=/dev/null"}, env)
	}
}

// TestGiven checks that a working folder with the user's home does not rule out the user's programs.
func TestGiven(t *testing.T) {
	b := newBench(t)
	t.Setenv("HOME", b.at("home/user"))
	b.sh("mkdir -p home/user/bin home/user/work; program home/user/bin/tool")
	find := func() bool { return finds(t, b.programs, "tool", "", b.at("home/user/bin")) }
	for _, folder := range []string{b.at("home/user"), b.at("home"), b.at("home/user/work"), "/", "relative"} {
		b.programs.Given(folder)
		must.Equal(t, "found, given "+folder, true, find())
	}
	b.programs.Add("/")
	must.Equal(t, "found with / added", true, find())
	for folder, home := range map[string]string{"safe": "", "safe2": b.at("none")} {
		b.sh("mkdir -p " + folder)
		t.Setenv("HOME", home)
		b.programs.Given(b.at(folder))
		must.Equal(t, "recorded with the home "+home, true, b.programs.Writable(b.at(folder)))
	}
	b.programs.Add(b.at("home/user"))
	must.Equal(t, "found in a writable folder", false, find())
}

// TestTemporaryFolders checks that a program in a folder for temporary files starts only if
// the user has named it by its path.
func TestTemporaryFolders(t *testing.T) {
	b := newBench(t)
	b.sh("program safe/tool")
	programs := &box.Programs{Temporary: []string{b.top}}
	must.Equal(t, "found by its name", false, finds(t, programs, "tool", "", b.at("safe")))
	for _, add := range []string{"", b.top} { // commands can write most such folders
		programs.Add(add)
		must.Equal(t, "found by its path", true, finds(t, programs, b.at("safe/tool"), b.top, ""))
	}
	programs.Add(b.at("safe"))
	must.Equal(t, "found in a working folder there", false, finds(t, programs, b.at("safe/tool"), "", ""))
	t.Setenv("TMPDIR", b.at("other"))
	for _, system := range []string{"/tmp", "/var/tmp", "/dev/shm", b.at("other")} {
		dir, err := os.MkdirTemp(system, "programs")
		if errors.Is(err, fs.ErrNotExist) {
			continue // not every system has all
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		must.OK(t, err, testenv.WriteProgram(filepath.Join(dir, "tool"), nil))
		must.Equal(t, "found in "+system, false, finds(t, &box.Programs{}, "tool", "", dir))
	}
}

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
		argv, environ, err := p.Outside(words, commands, in("work"), env, nil)
		if err == nil && strings.HasSuffix(argv[0], "sh") { // /bin may be a link to /usr/bin
			argv[0] = "/bin/" + filepath.Base(argv[0])
		}
		if got := strings.Join(argv, "|"); got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s: %q, %v, want %q", tt.argv, got, err, tt.want)
		}
		must.Equal(t, tt.argv+" has its PATH", err == nil, slices.Contains(environ, "PATH="+path))
	}
	// A folder that became writable meanwhile, and one of another conversation.
	mine := &box.Programs{Temporary: []string{}}
	mine.Add(in("sys"))
	for p, folders := range map[*box.Programs][]string{mine: nil, {Temporary: []string{}}: {in("sys")}} {
		argv, _, err := p.Outside([]string{"own"}, [][]string{{"own"}}, in("work"), env, nil, folders...)
		must.OK(t, err)
		must.Equal(t, "the program", in("late/own"), argv[0])
	}
}

// TestOutsideEnviron has variables that a command outside the sandbox gets, and those that name programs, code or files of
// folders that commands can write.
func TestOutsideEnviron(t *testing.T) {
	top := boxtest.Folder(t)
	work, sys := filepath.Join(top, "work"), filepath.Join(top, "sys")
	boxtest.Lay(t, top, "work/file=", "sys/file=", "sys/own=#!/bin/sh\n", "sys/out -> ../work")
	stands := strings.NewReplacer("WORK", work, "SYS", sys)
	environ := func(named []string, entries ...string) []string {
		t.Helper()
		p := &box.Programs{Temporary: []string{}}
		p.Add(work)
		for i, entry := range entries {
			entries[i] = stands.Replace(entry)
		}
		_, env, err := p.Outside([]string{"own"}, [][]string{{"own"}}, work, append(entries, "PATH="+sys), named)
		must.OK(t, err)
		return slices.DeleteFunc(env, func(entry string) bool { return entry == "PATH="+sys })
	}
	for entry := range strings.SplitSeq(`HOME=SYS|LOGNAME=u|USER=u|USERNAME=u|LANG=C.UTF-8|LC_ALL=C|LC_MESSAGES=de_DE|TZ=Europe/Berlin|TZ=:SYS/file|TERM=xterm|NO_COLOR=1|NO_COLOR=
		HTTP_PROXY=http://h:1/|https_proxy=http://u@h|no_proxy=localhost,/x|ALL_PROXY=socks5://h|SSL_CERT_FILE=SYS/file|SSL_CERT_DIR=SYS|SSH_AUTH_SOCK=SYS/file|XDG_RUNTIME_DIR=SYS
		DBUS_SESSION_BUS_ADDRESS=unix:path=SYS/file|DBUS_SESSION_BUS_ADDRESS=unix:path=SYS/file,guid=1|TMPDIR=WORK|TEMP=x|TMP=WORK`, "|") {
		for entry := range strings.FieldsSeq(entry) {
			must.Equal(t, entry, []string{stands.Replace(entry)}, environ(nil, entry))
		}
	}
	for name := range strings.FieldsSeq(`MAKEFILES MAKEFLAGS GOENV GOFLAGS GOROOT GOTOOLCHAIN PKG_CONFIG OPENSSL_CONF PIP_CONFIG_FILE GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_ASKPASS
		SSH_ASKPASS GIT_CONFIG_COUNT GIT_CONFIG_GLOBAL GIT_EXEC_PATH GIT_EDITOR GIT_DIR EDITOR VISUAL PAGER MANPAGER KUBE_EDITOR LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES
		BASH_ENV ENV SHELLOPTS BASH_FUNC_x%% PYTHONPATH PYTHONSTARTUP PYTHONHOME NODE_OPTIONS NODE_PATH PERL5LIB PERL5OPT RUBYOPT RUBYLIB PROMPT_COMMAND RSYNC_RSH RUSTC_WRAPPER
		JAVA_TOOL_OPTIONS _JAVA_OPTIONS LESSOPEN BROWSER SHELL npm_config_script_shell npm_config_userconfig SUDO_ASKPASS AWS_CONFIG_FILE KUBECONFIG DOCKER_CONFIG DOCKER_HOST GH_TOKEN
		XDG_CONFIG_HOME XDG_DATA_HOME CARGO_HOME TERMINFO LOCPATH NLSPATH GCONV_PATH HOSTALIASES CURL_HOME WGETRC INPUTRC SSLKEYLOGFILE COMSPEC Path PWD HOME2 USER_X TMPDIR2`) {
		must.Equal(t, name, []string{}, environ(nil, name+"=x"))
		must.Equal(t, name, []string{}, environ(nil, name+"=SYS/file"))
	}
	for entry := range strings.FieldsSeq(`HOME=WORK HOME=. HOME= HOME=SYS/missing HOME=SYS/out SSL_CERT_FILE=WORK/file SSL_CERT_FILE=file SSL_CERT_DIR=WORK SSL_CERT_DIR=SYS:WORK SSH_AUTH_SOCK=SYS/out/file
		XDG_RUNTIME_DIR=WORK XDG_RUNTIME_DIR=../sys TZ=:WORK/file TZ=WORK/file LANG=WORK TERM=WORK/x DBUS_SESSION_BUS_ADDRESS=unix:path=WORK/file DBUS_SESSION_BUS_ADDRESS=unixexec:path=SYS/own
		DBUS_SESSION_BUS_ADDRESS=unix:path=SYS/file;unixexec:path=SYS/own DBUS_SESSION_BUS_ADDRESS=tcp:host=h`) {
		must.Equal(t, entry, []string{}, environ(nil, entry))
	}
	must.Equal(t, "named", []string{"GH_TOKEN=x", "HOME=" + work, "MAKEFLAGS=-j"}, environ([]string{"GH_TOKEN", "HOME", "MAKEFLAGS", "MISSING"}, "GH_TOKEN=x", "HOME=WORK", "GH_TOKEN_2=y", "MAKEFLAGS=-j", "gh_token=z"))
}
