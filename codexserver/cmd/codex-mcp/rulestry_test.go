package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestRulesTry plays rules over a record with commands that were asked about, allowed by a rule, run in the sandbox
// and refused, of both engines.
func TestRulesTry(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CODEX_HOME", dir)
	in := func(name string) string { return filepath.Join(dir, name) }
	exec := func(call, words string) []byte {
		argv := `["` + strings.ReplaceAll(words, " ", `","`) + `"]`
		return []byte(`{"type":"exec_approval_request","call_id":"` + call + `","command":` + argv + `,"cwd":"/work"}`)
	}
	untrusted := &protocol.Basis{Policy: "untrusted", Sandbox: "workspace-write", Available: true}
	sandboxed := &protocol.Basis{Policy: "on-request", Sandbox: "workspace-write", Available: true, Ran: "sandbox"}
	facts := &audit.Covers{Confinable: true, Placed: true, Basis: untrusted}
	writeRecord(t, in("log"),
		audit.Line{Thread: "t", ID: "1", Question: exec("1", "git push"), Decision: "approved", By: "client", Covers: facts},
		audit.Line{Thread: "t", ID: "2", Effect: audit.Begins, Kind: "command", Call: "1", DecidedBy: "1", Command: []string{"git", "push"}, Basis: untrusted},
		audit.Line{Thread: "t", Effect: audit.Ends, Of: "2"},
		audit.Line{Thread: "t", ID: "3", Question: exec("2", "make"), Decision: "approved", By: "rule", Covers: facts},
		audit.Line{Thread: "t", ID: "4", Effect: audit.Begins, Kind: "command", Call: "3", Command: []string{"rg", hostileText}, Cwd: "/work", Basis: sandboxed},
		audit.Line{Thread: "t", Effect: audit.Refused, Kind: "command", Call: "4", Command: []string{"curl"}, Cwd: "/work", Words: "never", Basis: &protocol.Basis{Policy: "never", Sandbox: "workspace-write"}},
		audit.Line{Thread: "codex", ID: "5", Effect: audit.Begins, Kind: "command", Call: "1", Command: []string{"ls"}, Cwd: "/work"},
		audit.Line{Thread: "codex", ID: "6", Question: exec("2", "git status"), Decision: "denied", By: "desk", Covers: &audit.Covers{Confinable: true, Placed: true}},
	)
	for name, text := range map[string]string{
		"same": "approvals.allow = [[\"make\"]]\n", "lax": "approvals.allow = [[\"make\"], {command = [\"git\"], outside = true}]\n",
		"strict": "approvals.ask = [[\"make\"], [\"rg\"]]\napprovals.deny = [[\"git\", \"push\"]]\n", "wrong": "approvals.allowed = 1\n",
	} {
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		args   string
		status int
		want   []string
		not    string
	}{
		{"rules try DIR/same --record DIR/log", 0, []string{"of 6 commands, 0 would now run without a question, 0 would be asked about, 0 would be refused", "1 command of these were not asked"}, "was asked about"},
		{"rules try DIR/lax -c approvals.log=DIR/log", 3, []string{"2 would now run", "git push was asked about, and now runs without a question", "in /work, thread t", "git status was asked about, and now runs without a question"}, "make"},
		{"rules try DIR/strict --record DIR/log", 3, []string{"0 would now run", "2 would be asked about, 1 would be refused", "git push was asked about, and now is refused", "make ran without a question, and now is asked about", `\u{202e}`}, ""},
		{"rules try DIR/same --record DIR/log -a never", 3, []string{"1 would now run", "git push was asked about, and now runs"}, ""},
		{"rules try DIR/same --record DIR/log -s danger-full-access -a never", 3, []string{"2 would now run", "git push", "curl was refused, and now runs"}, ""},
		{"rules try DIR/none --record DIR/log", 1, []string{"no such file"}, ""},
		{"rules try DIR/wrong --record DIR/log", 1, []string{"approvals.allowed"}, ""},
		{"rules try DIR/same --record DIR/none", 1, []string{"no such file"}, ""},
		{"rules try DIR/same", 1, []string{"names no approvals.log"}, ""},
		{"rules try", 2, []string{"want one file"}, ""},
	} {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), "codex-mcp", strings.Fields(strings.ReplaceAll(tt.args, "DIR", dir)), &stdout, &stderr)
		text := stdout.String() + stderr.String()
		if status != tt.status || control.MatchString(text) || tt.not != "" && strings.Contains(text, tt.not) {
			t.Errorf("%s: status %d, want %d:\n%s", tt.args, status, tt.status, text)
		}
		rest := text
		for _, want := range tt.want {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Errorf("%s: no %q in\n%s", tt.args, want, text)
				break
			}
			rest = after
		}
	}
}
