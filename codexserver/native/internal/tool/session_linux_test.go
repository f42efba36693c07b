package tool_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// TestSessionApprovalDoesNotCoverAnother approves commands for the session. Their first run
// is harmless. Then a file changes, so that the same words would run something else.
func TestSessionApprovalDoesNotCoverAnother(t *testing.T) {
	const (
		harmless = "#!/bin/sh\nexit 0\n"
		hostile  = "#!/bin/sh\n: >DIR/ran\n"
	)
	x := map[string]string{"x": harmless}
	for _, tt := range []struct {
		name     string
		argv     []string
		before   map[string]string
		replaced string            // a file that becomes hostile; x by default
		planted  map[string]string // further files that appear
		verified bool              // it runs again, and does not start what appeared
	}{
		{name: "a program", argv: []string{"./x"}, before: x},
		{name: "a program by its path", argv: []string{"DIR/x"}, before: x},
		{name: "a program in PATH", argv: []string{"tool"}, before: map[string]string{"bin/tool": harmless}, replaced: "bin/tool"},
		{name: "a program earlier in PATH", argv: []string{"uname"}, replaced: "bin/uname"},
		{name: "a missing program", argv: []string{"./new"}, replaced: "new"},
		{name: "a script of a shell", argv: []string{"sh", "x"}, before: x},
		{name: "a script after options of a shell", argv: []string{"bash", "--norc", "-e", "x"}, before: x},
		{name: "a word of a script", argv: []string{"bash", "-c", "./x"}, before: x},
		{name: "a quoted word of a script", argv: []string{"bash", "-c", "env './x'"}, before: x},

		{name: "glob", argv: []string{"sh", "-c", "env ./?"}, before: x},
		{name: "glob of a starter's shell", argv: []string{"choom", "-n", "0", "--", "sh", "-c", "./?"}, before: x},
		{name: "class", argv: []string{"sh", "-c", "env ./[x]"}, before: x},
		{name: "extended glob", argv: []string{"bash", "-O", "extglob", "-c", "env ./+(x)"}, before: x},
		{name: "brace", argv: []string{"bash", "-c", "env ./{x,none}"}, before: x},
		{name: "tilde", argv: []string{"sh", "-c", "env ~/x"}, before: x},
		{name: "tilde plus", argv: []string{"bash", "-c", "env ~+/x"}, before: x},
		{name: "dollar quote", argv: []string{"bash", "-c", "env $'./x'"}, before: x},
		{name: "dollar double quote", argv: []string{"bash", "-c", `env $"./x"`}, before: x},
		{name: "backslash", argv: []string{"sh", "-c", `env ./\x`}, before: x},
		{name: "joined quotes", argv: []string{"sh", "-c", `env ./"x"''`}, before: x},
		{name: "variable", argv: []string{"sh", "-c", `env "$PWD/x"`}, before: x},
		{name: "loop", argv: []string{"sh", "-c", `for f in ./x; do env "$f"; done`}, before: x},
		{name: "substitution", argv: []string{"sh", "-c", "env $(cat list)"}, before: map[string]string{"x": harmless, "list": "./x"}},
		{name: "backquotes", argv: []string{"sh", "-c", "env `cat list`"}, before: map[string]string{"x": harmless, "list": "./x"}},
		{name: "assignment", argv: []string{"sh", "-c", "PATH=new:$PATH tool"}, replaced: "new/tool"},
		{name: "assignment of a starter", argv: []string{"env", "PATH=new:/usr/bin:/bin", "tool"}, replaced: "new/tool"},
		{name: "function", argv: []string{"sh", "-c", "f() { env ./?; }; f"}, before: x},
		{name: "redirection", argv: []string{"sh", "-c", "awk -f - <x"}, before: map[string]string{"x": "BEGIN {}"}, planted: map[string]string{"x": `BEGIN { system(": >DIR/ran") }`}},
		{name: "pipe", argv: []string{"sh", "-c", "find -name 'x*' | xargs -n 1 env"}, before: x},
		{name: "subscript of test", argv: []string{"bash", "-c", "test -v 'a[$(./x)]'"}, before: x},
		{name: "subscript of brackets", argv: []string{"bash", "-c", "[ -v 'a[$(./x)]' ]"}, before: x},
		{name: "subscript of double brackets", argv: []string{"bash", "-c", "[[ 'a[$(./x)]' -eq 0 ]]"}, before: x},
		{name: "cd", argv: []string{"sh", "-c", "cd sub && env ./x"}, before: map[string]string{"sub/x": harmless}, replaced: "sub/x"},
		{name: "cd home", argv: []string{"sh", "-c", "cd && env sub/x"}, before: map[string]string{"sub/x": harmless}, replaced: "sub/x"},
		{name: "an earlier command", argv: []string{"bash", "-c", "set -- ./x; env $*"}, before: x},
		{name: "an earlier command that waits", argv: []string{"sh", "-c", "cp source x; env ./x"}, before: map[string]string{"source": harmless, "x": harmless}, replaced: "source"},

		{name: "find in another folder", argv: []string{"find", ".", "-name", "x", "-execdir", "./x", ";"}, before: map[string]string{"sub/x": harmless}, replaced: "sub/x"},
		{name: "find with a prefix", argv: []string{"find", "sub", "-type", "f", "-exec", "./{}", ";"}, before: map[string]string{"sub/x": harmless}, replaced: "sub/x"},
		{name: "find without a folder", argv: []string{"find", "-name", "x", "-exec", "env", "./{}", ";"}, before: x},
		{name: "awk", argv: []string{"awk", `BEGIN { system("./x") }`}, before: x},
		{name: "awk joins words", argv: []string{"awk", `BEGIN { system("./" "x") }`}, before: x},
		{name: "awk file", argv: []string{"awk", "-f", "x"}, before: map[string]string{"x": "BEGIN {}"}, planted: map[string]string{"x": `BEGIN { system(": >DIR/ran") }`}},
		{name: "awk file in one word", argv: []string{"awk", "-fx"}, before: map[string]string{"x": "BEGIN {}"}, planted: map[string]string{"x": `BEGIN { system(": >DIR/ran") }`}},
		{name: "sed", argv: []string{"sed", "-n", "1e ./x", "x"}, before: x},
		{name: "sed in one word", argv: []string{"sed", "-n", "1e./x", "list"}, before: map[string]string{"x": harmless, "list": "line\n"}},
		{name: "sed and PATH", argv: []string{"sed", "-n", "1etool", "list"}, before: map[string]string{"bin/tool": harmless, "list": "line\n"}, replaced: "bin/tool", verified: true},
		{name: "sed file", argv: []string{"sed", "--file=x", "list"}, before: map[string]string{"x": "1p", "list": "line\n"}, planted: map[string]string{"x": "1e : >DIR/ran"}},
		{name: "split", argv: []string{"split", "--filter=./x", "list"}, before: map[string]string{"x": harmless, "list": "line\n"}},
		{name: "tar", argv: []string{"tar", "-cf", "/dev/null", "--checkpoint=1", "--checkpoint-action=exec=./x", "list"}, before: map[string]string{"x": harmless, "list": "line\n"}},
		{name: "tar in one word", argv: []string{"tar", "-cI./x", "-fout", "list"}, before: map[string]string{"x": harmless, "list": "line\n"}},
		{name: "install", argv: []string{"install", "-s", "--strip-program=./x", "list", "copy"}, before: map[string]string{"x": harmless, "list": "line\n"}},
		{name: "an unlisted starter", argv: []string{"choom", "-n", "0", "./x"}, before: x},
		{name: "an unlisted starter with PATH", argv: []string{"choom", "-n", "0", "tool"}, before: map[string]string{"bin/tool": harmless}, replaced: "bin/tool"},
		{name: "a starter of words in a word", argv: []string{"env", "-S", "env ./x"}, before: x},
		{name: "a starter in another folder", argv: []string{"env", "-Csub", "./x"}, before: map[string]string{"sub/x": harmless}, replaced: "sub/x"},
		{name: "a starter in a script", argv: []string{"sh", "-c", "nice choom -n 0 ./x"}, before: x},
		{name: "git alias", argv: []string{"git", "-c", "alias.a=!./x", "a"}, before: x},
		{name: "git setting", argv: []string{"git", "-c", "core.sshCommand=./x", "ls-remote", "host:repository"}, before: x},
		{name: "git program", argv: []string{"git", "tool"}, replaced: "bin/git-tool"},
		{name: "git file", argv: []string{"git", "-c", "include.path=DIR/x", "ls-remote", "host:repository"}, before: map[string]string{"x": "[core]\n"}, planted: map[string]string{"x": "[core]\nsshCommand = \": >DIR/ran; false\"\n"}},
		{name: "up and down", argv: []string{"sub/../x"}, before: map[string]string{"x": harmless, "sub/file": ""}},
		{name: "a library", argv: []string{"env", "LD_PRELOAD=./x.so", "uname"}, replaced: "x.so"},
		{name: "a program in a folder like its name", argv: []string{"env", "tool", "tool"}, before: map[string]string{"bin/tool": harmless}, replaced: "bin/tool"},
		{name: "a profile", argv: []string{"bash", "-lc", "uname"}, replaced: ".bash_profile", verified: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			here := strings.NewReplacer("DIR", dir)
			write := func(files map[string]string) {
				for name, text := range files {
					path := filepath.Join(dir, name)
					if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(here.Replace(text)), 0o700); err != nil {
						t.Fatal(err)
					}
				}
			}
			write(tt.before)
			h := &host{answer: elicit.ApprovedForSession}
			box := newBox(tool.Options{Environ: []string{"PATH=" + dir + "/bin:/usr/bin:/bin", "HOME=" + dir}})
			turn := box.Turn(tool.Context{Cwd: dir, ApprovalPolicy: "untrusted", SandboxPolicy: protocol.SandboxPolicy{Mode: "workspace-write"}, Host: h})
			argv := make([]string, len(tt.argv))
			for i, word := range tt.argv {
				argv[i] = here.Replace(word)
			}
			call := shellCall(t, "", argv...)
			if _, err := turn.Call(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			ran := filepath.Join(dir, "ran")
			if _, err := os.Lstat(ran); err == nil {
				t.Fatal("the first run is not harmless")
			}
			planted := maps.Clone(tt.planted)
			switch {
			case tt.replaced != "":
				planted = map[string]string{tt.replaced: hostile}
			case planted == nil:
				planted = map[string]string{"x": hostile}
			}
			write(planted)
			h.answer = elicit.Denied
			if _, err := turn.Call(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(ran); err == nil {
				t.Errorf("it ran: %s", h.steps())
			} else if strings.HasSuffix(h.steps(), "ask") == tt.verified {
				t.Errorf("it was not asked again: %s", h.steps())
			}
		})
	}
}
