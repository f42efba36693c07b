//go:build unix

package tool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// TestReadMatrix checks that a call that reads is judged as a command that is known to be safe.
func TestReadMatrix(t *testing.T) {
	const asked = "ask: there is no sandbox on this system, begin, end 0"
	for _, tt := range []struct {
		policy   protocol.ApprovalPolicy
		mode     protocol.SandboxMode
		sandbox  *fakeSandbox
		answer   elicit.Decision
		want     string
		confined bool
		inside   bool // the approval is one for the sandbox only
	}{
		{"untrusted", "read-only", &fakeSandbox{}, elicit.Denied, "begin, end 0", true, false},
		{"untrusted", "danger-full-access", &fakeSandbox{}, elicit.Denied, "begin, end 0", true, false},
		{"on-request", "workspace-write", &fakeSandbox{}, elicit.Denied, "begin, end 0", true, false},
		{"never", "read-only", &fakeSandbox{}, elicit.Denied, "begin, end 0", true, false},
		{"on-request", "danger-full-access", &fakeSandbox{}, elicit.Denied, "begin, end 0", false, false},
		{"on-request", "workspace-write", &fakeSandbox{unread: box.ErrUnavailable}, elicit.Approved, asked, false, false},
		{"on-request", "workspace-write", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Approved, asked, false, false},
		{"on-request", "workspace-write", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Denied, "ask: there is no sandbox on this system", false, false},
		{"untrusted", "danger-full-access", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Approved, asked, false, false},
		{"on-request", "read-only", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Approved, "ask: there is no sandbox on this system", false, true},
		{"never", "read-only", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Approved, "refused", false, false},
		{"never", "read-only", &fakeSandbox{missing: os.ErrInvalid}, elicit.Approved, "refused", false, false},
	} {
		for _, call := range []tool.Call{
			{ID: "c", Name: "read", Arguments: `{"path":"file"}`}, {ID: "c", Name: "list", Arguments: `{}`}, {ID: "c", Name: "search", Arguments: `{"pattern":"o"}`},
		} {
			h := &host{answer: tt.answer, inside: tt.inside}
			tt.sandbox.host = h
			tt.sandbox.reads.Store(0)
			dir := t.TempDir()
			boxtest.Lay(t, dir, "file=one\n")
			turn := turnOf(tool.Options{Environ: environ, FileTools: true, Sandbox: tt.sandbox}, h, dir, tt.policy, tt.mode)
			res := called(t, turn, call)
			if h.steps() != tt.want || tt.sandbox.reads.Load() == 2 != tt.confined { // once to try
				t.Errorf("%s %s %s: steps %q, want %q; confined %d", tt.policy, tt.mode, call.Name, h.steps(), tt.want, tt.sandbox.reads.Load())
			}
			if shows := strings.Contains(res.Output, "one") || strings.Contains(res.Output, "file\n"); shows != strings.HasSuffix(tt.want, "end 0") || strings.HasPrefix(res.Output, "not run: it may run only in the sandbox") != tt.inside {
				t.Errorf("%s %s %s: %q", tt.policy, tt.mode, call.Name, res.Output)
			}
		}
	}
}

// TestFileToolsWithoutReading checks that answers about changes show nothing of files where reading
// needs a question, and that files elsewhere are not tried.
func TestFileToolsWithoutReading(t *testing.T) {
	work, _ := workspace(t)
	h := &host{answer: elicit.Denied}
	turn := turnOf(tool.Options{Environ: environ, FileTools: true, Sandbox: &fakeSandbox{host: h, missing: box.ErrUnavailable}}, h, work, "on-request", "read-only")
	for arguments, want := range map[string]string{
		`{"path":"plain/file","old":"ones","new":"two"}`: "old is not in plain/file",
		`{"path":"plain/fil","old":"one","new":"two"}`:   "plain/fil does not exist",
		`{"path":"notes.txt","old":"on","new":"two"}`:    "outside of the working folder",
		`{"path":"notes.txt","old":"zz","new":"two"}`:    "outside of the working folder",
	} {
		res, err := turn.Call(t.Context(), tool.Call{ID: "c", Name: "edit", Arguments: arguments})
		if err != nil || !strings.Contains(res.Output, want) || strings.Contains(res.Output, "line 1") || strings.Contains(res.Output, "\nfile") {
			t.Errorf("%s: %q, %v", arguments, res.Output, err)
		}
	}
	if h.steps() != "" {
		t.Errorf("steps %s", h.steps())
	}
}

// TestFileToolsSwitchedOff checks that tools that are not offered do nothing, and that a review
// changes nothing.
func TestFileToolsSwitchedOff(t *testing.T) {
	for _, o := range []tool.Options{{}, {FileTools: true, ReadOnly: true}} {
		dir := t.TempDir()
		h := &host{answer: elicit.Approved}
		turn := turnOf(o, h, dir, "on-request", "danger-full-access")
		res, err := turn.Call(t.Context(), tool.Call{ID: "c", Name: "write", Arguments: `{"path":"a","content":"x\n"}`})
		steps := ""
		if o.FileTools {
			steps = "refused"
		}
		if err != nil || res.Unknown == o.FileTools || h.steps() != steps || len(tree(t, dir)) != 1 {
			t.Errorf("%q, %v, steps %s", res.Output, err, h.steps())
		}
	}
}

// TestReplaceIsBounded replaces text by so much that memory would not hold it.
func TestReplaceIsBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte(strings.Repeat("a", 1<<20)), 0o666); err != nil {
		t.Fatal(err)
	}
	turn := turnOf(tool.Options{Environ: environ, FileTools: true}, &host{}, dir, "never", "danger-full-access")
	res, err := turn.Call(t.Context(), tool.Call{ID: "c", Name: "edit", Arguments: `{"path":"a","old":"a","new":"` + strings.Repeat("b", 1<<20) + `","all":true}`})
	if err != nil || !strings.Contains(res.Output, "would be too large") {
		t.Errorf("%.200q, %v", res.Output, err)
	}
}

// TestWeakCalls has wrong calls as small models make them. Each answer names the fault and the
// next step, and changes nothing; the next call follows it.
func TestWeakCalls(t *testing.T) {
	const server = "package server\n\nfunc Start() error {\n\tprepare()\n\treturn nil\n}\n\nfunc Stop() error {\n\treturn nil\n}\n"
	type step struct{ name, arguments string }
	for _, tt := range []struct {
		name  string
		setup string // what happens after the first read: changed, huge
		read  string // a file that the model has read
		wrong step
		want  []string // in the answer
		right step
		gets  string // in the second answer
		path  string // a file afterwards, and what it has
		has   string
	}{
		{
			name:  "text that is there twice",
			wrong: step{"edit", `{"path":"server.go","old":"\treturn nil\n","new":"\treturn err\n"}`},
			want:  []string{"2 times", "line 5: \treturn nil", "line 9: \treturn nil", "all to true"},
			right: step{"edit", `{"path":"server.go","old":"Stop() error {\n\treturn nil\n","new":"Stop() error {\n\treturn err\n"}`},
			gets:  "Success", path: "server.go", has: "Stop() error {\n\treturn err\n",
		},
		{
			name:  "text from memory",
			wrong: step{"edit", `{"path":"server.go","old":"func Starts() (err error) {","new":"func Run() error {"}`},
			want:  []string{"old is not in server.go", "line 3: func Start() error {", "copy the text exactly"},
			right: step{"edit", `{"path":"server.go","old":"func Start() error {","new":"func Run() error {"}`},
			gets:  "Success", path: "server.go", has: "func Run() error {\n",
		},
		{
			name:  "blanks for tabs",
			wrong: step{"edit", `{"path":"server.go","old":"func Start() error {\n    prepare()\n","new":"func Start() error {\n    begin()\n"}`},
			want:  []string{"line numbers differ from line 3", "\tprepare()", "copy these lines exactly"},
			right: step{"edit", `{"path":"server.go","old":"\tprepare()\n","new":"\tbegin()\n"}`},
			gets:  "Success", path: "server.go", has: "\tbegin()\n",
		},
		{
			name:  "blanks for a tab at the end of the file",
			wrong: step{"edit", `{"path":"server.go","old":"func Stop() error {\n    return nil\n}\n","new":"func Stop() error {\n    return err\n}\n"}`},
			want:  []string{"line numbers differ from line 8", "\treturn nil\n}", "copy these lines exactly"},
			right: step{"edit", `{"path":"server.go","old":"func Stop() error {\n\treturn nil\n}\n","new":"func Stop() error {\n\treturn err\n}\n"}`},
			gets:  "Success", path: "server.go", has: "Stop() error {\n\treturn err\n",
		},
		{
			name:  "line numbers copied",
			wrong: step{"edit", `{"path":"server.go","old":"4\tprepare()\n","new":"4\tbegin()\n"}`},
			want:  []string{"line numbers differ from line 4", "\tprepare()"},
			right: step{"edit", `{"path":"server.go","old":"prepare()\n","new":"begin()\n"}`},
			gets:  "Success", path: "server.go", has: "\tbegin()\n",
		},
		{
			name:  "escapes written twice",
			wrong: step{"edit", `{"path":"server.go","old":"\\tprepare()\\n\\treturn nil","new":"\\treturn nil"}`},
			want:  []string{"line ends or line numbers differ from line 4", "\tprepare()\n\treturn nil"},
			right: step{"edit", `{"path":"server.go","old":"\tprepare()\n\treturn nil","new":"\treturn nil"}`},
			gets:  "Success", path: "server.go", has: "Start() error {\n\treturn nil\n",
		},
		{
			name:  "a newline that the file lacks",
			wrong: step{"edit", `{"path":"notes.txt","old":"last line\n","new":"the end\n"}`},
			want:  []string{"line ends or line numbers differ from line 2", "last line"},
			right: step{"edit", `{"path":"notes.txt","old":"last line","new":"the end\n"}`},
			gets:  "Success", path: "notes.txt", has: "the end\n",
		},
		{
			name:  "a change that is made already",
			wrong: step{"edit", `{"path":"server.go","old":"func Halt() error {","new":"func Stop() error {"}`},
			want:  []string{"new is there already, at line 8", "read the file"},
			right: step{"read", `{"path":"server.go","first_line":8,"last_line":8}`},
			gets:  "8\tfunc Stop() error {",
		},
		{
			name:  "nothing to change",
			wrong: step{"edit", `{"path":"server.go","old":"prepare","new":"prepare"}`},
			want:  []string{"the same", "changed text in new"},
			right: step{"edit", `{"path":"server.go","old":"prepare","new":"begin"}`},
			gets:  "Success", path: "server.go", has: "begin()",
		},
		{
			name:  "an empty old to append",
			wrong: step{"edit", `{"path":"server.go","old":"","new":"// end\n"}`},
			want:  []string{"old is empty", "a line beside the place"},
			right: step{"edit", `{"path":"server.go","old":"func Stop()","new":"// Stop ends it.\nfunc Stop()"}`},
			gets:  "Success", path: "server.go", has: "// Stop ends it.\nfunc Stop()",
		},
		{
			name:  "a misspelt path",
			wrong: step{"read", `{"path":"sever.go"}`},
			want:  []string{"sever.go does not exist", "server.go", "list and search"},
			right: step{"read", `{"path":"server.go"}`},
			gets:  "1\tpackage server",
		},
		{
			name:  "a path without its folder",
			wrong: step{"edit", `{"path":"deep.go","old":"package b","new":"package c"}`},
			want:  []string{"deep.go does not exist", "a/b/deep.go"},
			right: step{"edit", `{"path":"a/b/deep.go","old":"package b","new":"package c"}`},
			gets:  "Success", path: "a/b/deep.go", has: "package c\n",
		},
		{
			name:  "stale content written",
			read:  "server.go",
			setup: "changed",
			wrong: step{"write", `{"path":"server.go","content":"package server\n"}`},
			want:  []string{"has changed since you read it", "read it again"},
			right: step{"read", `{"path":"server.go"}`},
			gets:  "// changed by somebody else",
		},
		{
			name:  "stale content edited",
			read:  "server.go",
			setup: "changed",
			wrong: step{"edit", `{"path":"server.go","old":"package server\n\nfunc Start","new":"package server\n\n// Start begins.\nfunc Start"}`},
			want:  []string{"which has changed since you read it", "read server.go"},
			right: step{"edit", `{"path":"server.go","old":"\nfunc Start","new":"\n// Start begins.\nfunc Start"}`},
			gets:  "Success", path: "server.go", has: "// Start begins.\nfunc Start",
		},
		{
			name:  "a file overwritten unread",
			wrong: step{"write", `{"path":"notes.txt","content":"all new\n"}`},
			want:  []string{"notes.txt exists, and you have not read it", "or change a part of it with edit"},
			right: step{"edit", `{"path":"notes.txt","old":"first line","new":"line one"}`},
			gets:  "Success", path: "notes.txt", has: "line one\n",
		},
		{
			name:  "a number as text",
			wrong: step{"read", `{"path":"server.go","first_line":"3"}`},
			want:  []string{"first_line: want a number, found string", "call read again"},
			right: step{"read", `{"path":"server.go","first_line":3}`},
			gets:  "3\tfunc Start() error {",
		},
		{
			name:  "another tool's names",
			wrong: step{"edit", `{"file_path":"server.go","old_string":"prepare","new_string":"begin"}`},
			want:  []string{"path: missing", `"file_path"`, "path, old, new, all"},
			right: step{"edit", `{"path":"server.go","old":"prepare","new":"begin"}`},
			gets:  "Success", path: "server.go", has: "begin()",
		},
		{
			name:  "lines behind the end",
			wrong: step{"read", `{"path":"server.go","first_line":120,"last_line":160}`},
			want:  []string{"first_line 120 is behind the end", "server.go has 10 lines"},
			right: step{"read", `{"path":"server.go","first_line":9,"last_line":10}`},
			gets:  "9\t\treturn nil\n10\t}\n",
		},
		{
			name:  "a folder as a file",
			wrong: step{"read", `{"path":"a"}`},
			want:  []string{"a is a folder", "b/", "path of a file"},
			right: step{"list", `{"path":"a/b"}`},
			gets:  "deep.go",
		},
		{
			name:  "a file as a folder",
			wrong: step{"list", `{"path":"server.go"}`},
			want:  []string{"server.go is a file, not a folder", "use read"},
			right: step{"read", `{"path":"server.go","last_line":1}`},
			gets:  "1\tpackage server",
		},
		{
			name:  "a binary file",
			wrong: step{"edit", `{"path":"logo.bin","old":"x","new":"y"}`},
			want:  []string{"logo.bin is not UTF-8 text", "through shell"},
			right: step{"list", `{"pattern":"*.bin"}`},
			gets:  "logo.bin",
		},
		{
			name:  "a file that is too large",
			setup: "huge",
			wrong: step{"read", `{"path":"huge.log"}`},
			want:  []string{"huge.log is too large", "sed -n"},
			right: step{"search", `{"pattern":"package","files":"*.go"}`},
			gets:  "server.go:1:package server",
		},
		{
			name:  "a bracket in a search",
			wrong: step{"search", `{"pattern":"prepare("}`},
			want:  []string{"missing closing )", `"prepare\\("`},
			right: step{"search", `{"pattern":"prepare\\("}`},
			gets:  "server.go:4:\tprepare()",
		},
		{
			name:  "arguments that are cut off",
			wrong: step{"write", `{"path":"new.txt","content":"one`},
			want:  []string{"failed to parse function arguments", "call write again with path, content"},
			right: step{"write", `{"path":"new.txt","content":"one"}`},
			gets:  "does not end with a newline.\nNext: ", path: "new.txt", has: "one",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			boxtest.Lay(t, dir, "server.go="+server, "notes.txt=first line\nlast line", "a/b/deep.go=package b\n", "logo.bin=x\x00y")
			h := &host{}
			turn := turnOf(tool.Options{Environ: environ, FileTools: true, Sandbox: &fakeSandbox{host: h}}, h, dir, "on-request", "workspace-write")
			call := func(s step) string {
				t.Helper()
				return called(t, turn, tool.Call{ID: "c", Name: s.name, Arguments: s.arguments}).Output
			}
			if tt.read != "" {
				call(step{"read", `{"path":"` + tt.read + `"}`})
			}
			switch tt.setup {
			case "huge": // and sparse
				boxtest.Lay(t, dir, "huge.log")
				if err := os.Truncate(filepath.Join(dir, "huge.log"), 64<<20+1); err != nil {
					t.Fatal(err)
				}
			case "changed":
				boxtest.Lay(t, dir, "server.go="+strings.Replace(server, "server\n", "server\n// changed by somebody else\n", 1))
			}
			before := tree(t, dir)
			answer := call(tt.wrong)
			for _, want := range tt.want {
				if !strings.Contains(answer, want) {
					t.Errorf("the answer lacks %q:\n%s", want, answer)
				}
			}
			if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
				t.Errorf("the wrong call changed files (-before +after)\n%s", diff)
			}
			if got := call(tt.right); !strings.Contains(got, tt.gets) {
				t.Errorf("the next call: %q lacks %q", got, tt.gets)
			}
			if tt.path != "" {
				content, err := os.ReadFile(filepath.Join(dir, tt.path))
				if err != nil || !strings.Contains(string(content), tt.has) {
					t.Errorf("%s has %q, %v", tt.path, content, err)
				}
			}
		})
	}
}
