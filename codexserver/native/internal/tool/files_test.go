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
	"github.com/codexmcp/codexmcp/internal/testenv/must"
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
		inside   bool   // the approval is one for the sandbox only
		path     string // of the folder that is read
	}{
		{"untrusted", "read-only", &fakeSandbox{}, elicit.Denied, "begin, end 0", true, false, "."},
		{"untrusted", "danger-full-access", &fakeSandbox{}, elicit.Denied, "begin, end 0", true, false, "."},
		{"on-request", "workspace-write", &fakeSandbox{}, elicit.Denied, "begin, end 0", true, false, "."},
		{"never", "read-only", &fakeSandbox{}, elicit.Denied, "begin, end 0", true, false, "."},
		{"on-request", "danger-full-access", &fakeSandbox{}, elicit.Denied, "begin, end 0", false, false, "."},
		{"on-request", "workspace-write", &fakeSandbox{unread: box.ErrUnavailable}, elicit.Approved, asked, false, false, "."},
		{"on-request", "workspace-write", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Approved, asked, false, false, "../out"},
		{"on-request", "workspace-write", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Denied, "ask: there is no sandbox on this system", false, false, "../out"},
		{"untrusted", "danger-full-access", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Approved, asked, false, false, "../out"},
		{"on-request", "read-only", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Approved, "ask: there is no sandbox on this system", false, true, "../out"},
		{"never", "read-only", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Approved, "refused", false, false, "../out"},
		{"never", "read-only", &fakeSandbox{unread: box.ErrUnavailable}, elicit.Approved, "refused", false, false, "."},
		{"never", "read-only", &fakeSandbox{missing: os.ErrInvalid}, elicit.Approved, "refused", false, false, "."},
		{"never", "read-only", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Denied, "begin, end 0", false, false, "."},
		{"untrusted", "workspace-write", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Denied, "begin, end 0", false, false, "near"},
		{"on-request", "workspace-write", &fakeSandbox{missing: box.ErrUnavailable}, elicit.Denied, "ask: there is no sandbox on this system", false, false, "link"},
	} {
		for _, call := range []tool.Call{
			{ID: "c", Name: "read", Arguments: `{"path":"DIR/file"}`}, {ID: "c", Name: "list", Arguments: `{"path":"DIR"}`}, {ID: "c", Name: "search", Arguments: `{"path":"DIR","pattern":"o"}`},
			{ID: "c", Name: "view_image", Arguments: `{"path":"DIR/image"}`},
		} {
			call.Arguments = strings.ReplaceAll(call.Arguments, "DIR", tt.path)
			h := &host{answer: tt.answer, inside: tt.inside}
			tt.sandbox.host = h
			tt.sandbox.reads.Store(0)
			top := t.TempDir()
			dir := filepath.Join(top, "work")
			boxtest.Lay(t, top, "work/file=one\n", "out/file=one\n", "work/image="+pictures["gif"], "out/image="+pictures["gif"], "work/link -> ../out", "work/near -> .")
			turn := turnOf(tool.Options{Environ: environ, FileTools: true, ImageTool: true, Sandbox: tt.sandbox}, h, dir, tt.policy, tt.mode)
			res := called(t, turn, call)
			want := tt.want
			if call.Name == "view_image" { // which has an event of its own
				want = strings.TrimSuffix(strings.TrimSuffix(want, "begin, end 0"), ", ")
			}
			if h.steps() != want || tt.sandbox.reads.Load() == 2 != tt.confined { // once to try
				t.Errorf("%s %s %s %s: steps %q, want %q; confined %d", tt.policy, tt.mode, call.Name, tt.path, h.steps(), want, tt.sandbox.reads.Load())
			}
			if shows := strings.Contains(res.Output, "one") || strings.Contains(res.Output, "file\n") || len(res.Items) > 0; shows != strings.HasSuffix(tt.want, "end 0") || strings.HasPrefix(res.Output, "not run: it may run only in the sandbox") != tt.inside {
				t.Errorf("%s %s %s %s: %q", tt.policy, tt.mode, call.Name, tt.path, res.Output)
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
	must.Equal(t, "steps", "", h.steps())
}

// TestSwitchedOff checks that tools that are not offered do nothing, but for other names of the shell and of patches,
// and that a review changes nothing.
func TestSwitchedOff(t *testing.T) {
	for _, tt := range []struct {
		call  tool.Call
		o     tool.Options
		want  string // the steps
		knows bool
	}{
		{tool.Call{Name: "write", Arguments: `{"path":"a","content":"x\n"}`}, tool.Options{}, "", false},
		{tool.Call{Name: "write", Arguments: `{"path":"a","content":"x\n"}`}, tool.Options{FileTools: true, ReadOnly: true}, "refused", true},
		{tool.Call{Name: "read", Arguments: `{"path":"image"}`}, tool.Options{ImageTool: true, PlanTool: true, PatchTool: true}, "", false},
		{tool.Call{Name: "view_image", Arguments: `{"path":"image"}`}, tool.Options{FileTools: true, PlanTool: true}, "", false},
		{tool.Call{Name: "view_image", Arguments: `{"path":"image"}`}, tool.Options{ImageTool: true}, "", true},
		{tool.Call{Name: "update_plan", Arguments: `{"plan":[]}`}, tool.Options{FileTools: true, ImageTool: true}, "", false},
		{tool.Call{Name: "container.exec", Arguments: `{"command":["true"]}`}, tool.Options{LocalShell: true}, "begin, end 0", true},
		{tool.Call{Name: "shell", Arguments: `{"command":["true"]}`}, tool.Options{LocalShell: true}, "begin, end 0", true},
		{tool.Call{Name: "apply_patch", Arguments: `{"input":"*** Begin Patch\n*** End Patch"}`}, tool.Options{FileTools: true}, "", true},
		{tool.Call{Name: "apply_patch", Arguments: "*** Begin Patch\n*** End Patch", Custom: true}, tool.Options{FileTools: true}, "", true},
		{tool.Call{Name: "view_image", Arguments: `{"path":"image"}`, Custom: true}, tool.Options{ImageTool: true}, "", false},
	} {
		dir := t.TempDir()
		boxtest.Lay(t, dir, "image="+pictures["png"])
		h := &host{answer: elicit.Approved}
		res := called(t, turnOf(tt.o, h, dir, "on-request", "danger-full-access"), tt.call)
		if res.Unknown == tt.knows || h.steps() != tt.want || len(h.all) > 0 != (tt.want != "" || len(res.Items) > 0) || len(tree(t, dir)) != 2 {
			t.Errorf("%s with %+v: %q, events %v", tt.call.Name, tt.o, res.Output, h.all)
		}
	}
}

// TestReplaceIsBounded replaces text by so much that memory would not hold it.
func TestReplaceIsBounded(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "a"), []byte(strings.Repeat("a", 1<<20)), 0o666))
	turn := turnOf(tool.Options{Environ: environ, FileTools: true}, &host{}, dir, "never", "danger-full-access")
	res, err := turn.Call(t.Context(), tool.Call{ID: "c", Name: "edit", Arguments: `{"path":"a","old":"a","new":"` + strings.Repeat("b", 1<<20) + `","all":true}`})
	if err != nil || !strings.Contains(res.Output, "would be too large") {
		t.Errorf("%.200q, %v", res.Output, err)
	}
}

// serverGo is a file of the tests of file tools.
const serverGo = "package server\n\nfunc Start() error {\n\tprepare()\n\treturn nil\n}\n\nfunc Stop() error {\n\treturn nil\n}\n"

// fileTools begins a turn with the file tools in a folder with some files, and returns a function that calls one.
func fileTools(t *testing.T) (dir string, call func(name, arguments string) string) {
	dir = t.TempDir()
	boxtest.Lay(t, dir, "server.go="+serverGo, "notes.txt=first line\nlast line", "a/b/deep.go=package b\n", "logo.bin=x\x00y", "crlf.txt=one\r\ntwo\r\n")
	h := &host{}
	turn := turnOf(tool.Options{Environ: environ, FileTools: true, Sandbox: &fakeSandbox{host: h}}, h, dir, "on-request", "workspace-write")
	return dir, func(name, arguments string) string {
		t.Helper()
		return called(t, turn, tool.Call{ID: "c", Name: name, Arguments: arguments}).Output
	}
}

// TestFileTools has right calls, their answers, and what a file has afterwards.
func TestFileTools(t *testing.T) {
	for _, tt := range []struct{ name, arguments, want, path, has string }{
		{"read", `{"path":"server.go","first_line":9,"last_line":10}`, "9\t\treturn nil\n10\t}\n", "", ""},
		{"read", `{"path":"crlf.txt"}`, "1\tone\n2\ttwo\n(lines end with CR LF; edit keeps that)\n", "", ""},
		{"list", `{"path":"a/b"}`, "deep.go\n", "", ""},
		{"list", `{"pattern":"*.bin"}`, "logo.bin\n", "", ""},
		{"search", `{"pattern":"prepare\\(","files":"*.go"}`, "server.go:4:\tprepare()\n", "", ""},
		{"edit", `{"path":"server.go","old":"Stop() error {\n\treturn nil\n","new":"Stop() error {\n\treturn err\n"}`, "Success", "server.go", "Stop() error {\n\treturn err\n"},
		{"edit", `{"path":"server.go","old":"return nil","new":"return err","all":true}`, "Success", "server.go", "prepare()\n\treturn err\n}\n\nfunc Stop() error {\n\treturn err\n"},
		{"edit", `{"path":"crlf.txt","old":"one\ntwo","new":"1\n2"}`, "Success", "crlf.txt", "1\r\n2\r\n"},
		{"edit", `{"path":"crlf.txt","old":"two","new":"2\nzwei"}`, "Success", "crlf.txt", "one\r\n2\r\nzwei\r\n"},
		{"edit", `{"path":"notes.txt","old":"last line","new":"the end\n"}`, "Success", "notes.txt", "first line\nthe end\n"},
		{"write", `{"path":"a/new.txt","content":"one"}`, "Success. Updated the following files:\nA a/new.txt\nThe file does not end with a newline.\nNext: ", "a/new.txt", "one"},
	} {
		dir, call := fileTools(t)
		if got := call(tt.name, tt.arguments); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s %s: %q, want %q", tt.name, tt.arguments, got, tt.want)
		}
		if content, err := os.ReadFile(filepath.Join(dir, tt.path)); tt.path != "" && (err != nil || !strings.Contains(string(content), tt.has)) {
			t.Errorf("%s %s: the file has %q, %v", tt.name, tt.arguments, content, err)
		}
	}
}

// TestWeakCalls has wrong calls as small models make them. Each answer names the fault and the
// next step, and nothing is changed.
func TestWeakCalls(t *testing.T) {
	changed := strings.Replace(serverGo, "server\n", "server\n// changed by somebody else\n", 1)
	for _, tt := range []struct {
		why, name, arguments string
		want                 []string // in the answer
	}{
		{"text that is there twice", "edit", `{"path":"server.go","old":"\treturn nil\n","new":"\treturn err\n"}`,
			[]string{"2 times", "in the lines 5, 9", "all to true"}},
		{"text from memory", "edit", `{"path":"server.go","old":"func Starts() (err error) {","new":"func Run() error {"}`,
			[]string{"old is not in server.go", "line 3: func Start() error {", "copy the text exactly"}},
		{"blanks for tabs", "edit", `{"path":"server.go","old":"func Start() error {\n    prepare()\n","new":"func Start() error {\n    begin()\n"}`,
			[]string{"line ends differ from line 3", "\tprepare()", "copy these lines exactly"}},
		{"blanks for a tab at the end of the file", "edit", `{"path":"server.go","old":"func Stop() error {\n    return nil\n}\n","new":"func Stop() error {\n    return err\n}\n"}`,
			[]string{"line ends differ from line 8", "\treturn nil\n}", "copy these lines exactly"}},
		{"line numbers copied", "edit", `{"path":"server.go","old":"4\tprepare()\n","new":"4\tbegin()\n"}`, []string{"The nearest line is", "line 4: \tprepare()"}},
		{"a newline that the file lacks", "edit", `{"path":"notes.txt","old":"last line\n","new":"the end\n"}`, []string{"line ends differ from line 2", "last line"}},
		{"nothing to change", "edit", `{"path":"server.go","old":"prepare","new":"prepare"}`, []string{"the same", "changed text in new"}},
		{"an empty old to append", "edit", `{"path":"server.go","old":"","new":"// end\n"}`, []string{"old is empty", "a line beside the place"}},
		{"a misspelt path", "read", `{"path":"sever.go"}`, []string{"sever.go does not exist", "server.go", "list and search"}},
		{"a path without its folder", "edit", `{"path":"deep.go","old":"package b","new":"package c"}`, []string{"deep.go does not exist", "a/b/deep.go"}},
		{"stale", "write", `{"path":"server.go","content":"package server\n"}`, []string{"has changed since you read it", "read it again"}},
		{"stale", "edit", `{"path":"server.go","old":"package server\n\nfunc Start","new":"package server\n\n// Start begins.\nfunc Start"}`,
			[]string{"The nearest line is", "line 1: package server", "read server.go"}},
		{"a file overwritten unread", "write", `{"path":"notes.txt","content":"all new\n"}`, []string{"notes.txt exists, and you have not read it", "or change a part of it with edit"}},
		{"a word for a number", "read", `{"path":"server.go","first_line":"three"}`, []string{"first_line: want a number, found string", "call read again"}},
		{"another tool's names", "edit", `{"file_path":"server.go","old_string":"prepare","new_string":"begin"}`, []string{"path: missing", `"file_path"`, "path, old, new, all"}},
		{"lines behind the end", "read", `{"path":"server.go","first_line":120,"last_line":160}`, []string{"first_line 120 is behind the end", "server.go has 10 lines"}},
		{"a folder as a file", "read", `{"path":"a"}`, []string{"a is a folder", "path of a file"}},
		{"a file as a folder", "list", `{"path":"server.go"}`, []string{"server.go is a file, not a folder", "use read"}},
		{"a binary file", "edit", `{"path":"logo.bin","old":"x","new":"y"}`, []string{"logo.bin is not UTF-8 text", "through shell"}},
		{"a file that is too large", "read", `{"path":"huge.log"}`, []string{"huge.log is too large", "sed -n"}},
		{"a bracket in a search", "search", `{"pattern":"prepare("}`, []string{"missing closing )", `"prepare\\("`}},
		{"arguments that are cut off", "write", `{"path":"new.txt","content":"one`, []string{"failed to parse function arguments", "call write again with path, content"}},
	} {
		t.Run(tt.why+", "+tt.name, func(t *testing.T) {
			dir, call := fileTools(t)
			switch tt.why {
			case "stale":
				call("read", `{"path":"server.go"}`)
				boxtest.Lay(t, dir, "server.go="+changed)
			case "a file that is too large": // and sparse
				boxtest.Lay(t, dir, "huge.log")
				must.OK(t, os.Truncate(filepath.Join(dir, "huge.log"), 64<<20+1))
			}
			before := tree(t, dir)
			answer := call(tt.name, tt.arguments)
			for _, want := range tt.want {
				if !strings.Contains(answer, want) {
					t.Errorf("the answer lacks %q:\n%s", want, answer)
				}
			}
			must.Equal(t, "it changed files", before, tree(t, dir))
		})
	}
}
