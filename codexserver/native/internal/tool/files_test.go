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
