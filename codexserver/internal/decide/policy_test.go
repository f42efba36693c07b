package decide_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// row is one line of testdata/commands.ndjson: what Codex 0.42.0 did with a command under
// the policy untrusted. Package summary tests how it described the command.
type row struct {
	Command []string `json:"command"`
	Safe    bool     `json:"safe"`
}

// judgment is one line of testdata/judged.ndjson: what must happen to a command, and why. Package approval tests Rules.
type judgment struct {
	Command   []string `json:"command"`
	Untrusted string   `json:"untrusted"` // under the policy untrusted
	Strict    bool     `json:"strict"`    // known to be safe by the strict rules
	Rules     string   `json:"rules"`
	Why       string   `json:"why"`
}

func readLines[T any](t *testing.T, file string) []T {
	t.Helper()
	b := must.Get(os.ReadFile(file))(t)
	var rows []T
	for line := range bytes.Lines(b) {
		var r T
		must.OK(t, json.Unmarshal(line, &r))
		rows = append(rows, r)
	}
	return rows
}

func bash(script string) []string { return []string{"bash", "-lc", script} }

func TestJudged(t *testing.T) {
	rows := readLines[judgment](t, "testdata/judged.ndjson")
	if len(rows) < 200 {
		t.Errorf("the corpus has %d commands", len(rows))
	}
	for _, r := range rows {
		want := map[string]decide.Action{"read-only": decide.RunReadOnly, "ask": decide.Ask}[r.Untrusted]
		for _, mode := range protocol.SandboxModes() {
			in := decide.Input{Policy: "untrusted", Sandbox: mode, SandboxAvailable: true, Command: r.Command}
			must.Equal(t, fmt.Sprintf("%q in %s: %s", r.Command, mode, r.Why), want, decide.Exec(in).Action)
		}
		must.Equal(t, fmt.Sprintf("%q is strictly safe: %s", r.Command, r.Why), r.Strict, decide.KnownSafe(r.Command, true))
	}
}

// TestKnownSafeAsRecorded compares the safe commands with those of September 2025. None
// was added; those that were removed are listed here.
func TestKnownSafeAsRecorded(t *testing.T) {
	away := [][]string{
		// Patterns could match a file whose name is an option, such as -delete.
		bash("find . -name *.txt"), bash("rg x *"), bash("git log -- *.txt"), bash("ls\r"),
		// These write, or run files of the workspace.
		{"git", "diff", "--output=F"}, {"git", "branch", "-D", "x"}, bash("git branch -D x"),
		{"cargo", "check"}, {"cargo", "check", "--all"}, bash("cargo check && cargo check"),
		// No version of rg has this option.
		{"rg", "--prefix", "x"},
	}
	for _, r := range readLines[row](t, "testdata/commands.ndjson") {
		want := r.Safe && !slices.ContainsFunc(away, func(c []string) bool { return slices.Equal(c, r.Command) })
		must.Equal(t, fmt.Sprintf("%q is known to be safe", r.Command), want, decide.KnownSafe(r.Command, false))
		must.Equal(t, fmt.Sprintf("%q is safe by the strict rules alone", r.Command), false, decide.KnownSafe(r.Command, true) && !want)
	}
}

// TestKnownSafeEdges has commands that are nearly known to be safe, each beside one that is.
func TestKnownSafeEdges(t *testing.T) {
	for script, want := range map[string]bool{
		"sed -n 1,2p x": true, "sed -n 1,2 x": false, "sed -n p x": false, "sed -n 1,p x": false,
		"git branch --format=%(refname)": true, "git branch --format=%(refname": false, "git branch --format=x%(if)%(HEAD)": false, "git branch --format=x%(HEAD)": true,
		"git branch --sort=-version:refname": true, "git branch --sort=v:refname": true, "git branch --sort=signature": false,
		"git branch --contains=x y": true, "git branch --no-contains x": true, "git branch --no-merged x": true, "git branch --points-at=x y": true, "git branch x": false,
		"git log --format=short": true, "git log --format=medium": true, "git log --format=full": true, "git log --format=fuller": true,
		"git log --format=reference": true, "git log --format=email": true, "git log --format=raw": true,
		"git log --format=": true, "git log --format=mine": false, "git log --format=format:x": true, "git log --format=tformat:x": true,
		"git log --format=%h": true, "git log --format=%GK": false, "git log --format=format:%": false,
	} {
		must.Equal(t, script, want, decide.KnownSafe(strings.Fields(script), false))
	}
	for script, want := range map[string]bool{
		"ls": true, "ls\n# x": false, "# x": false, "ls a\\\nb": true, "echo " + strings.Repeat("a ", 1000): true, "echo " + strings.Repeat("a ", decide.MaxScript): false,
	} {
		must.Equal(t, fmt.Sprintf("%.20q", script), want, decide.KnownSafe(bash(script), false))
	}
	must.Equal(t, "no command is known to be safe", false, decide.KnownSafe(nil, false) || decide.KnownSafe([]string{}, false))
}

// TestDecide has what the table of policies leaves out. [TestPolicies] compares the rest.
func TestDecide(t *testing.T) {
	const readOnly, write, full = protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess
	plain, safe, git := []string{"touch", "x"}, []string{"ls"}, []string{"git", "status"}
	for _, tt := range []struct {
		name string
		in   decide.Input
		want decide.Action
	}{
		{"no policy", decide.Input{Sandbox: full, Command: safe, SandboxAvailable: true}, decide.Refuse},
		{"an unknown policy", decide.Input{Policy: "sometimes", Sandbox: readOnly, Command: safe, SandboxAvailable: true, SessionApproved: true}, decide.Refuse},
		{"no sandbox mode", decide.Input{Policy: "never", Command: safe, SandboxAvailable: true}, decide.Refuse},
		{"an unknown sandbox mode", decide.Input{Policy: "on-request", Sandbox: "none", Command: safe, SandboxAvailable: true, SessionApproved: true}, decide.Refuse},
		{"escalated without need", decide.Input{Policy: "untrusted", Sandbox: full, Command: safe, SandboxAvailable: true, Escalated: true}, decide.Ask},
		{"escalated, known to be safe", decide.Input{Policy: "on-request", Sandbox: write, Command: safe, SandboxAvailable: true, Escalated: true}, decide.Ask},
		{"known to be safe without a sandbox", decide.Input{Policy: "untrusted", Sandbox: full, Command: safe}, decide.Ask},
		{"without a sandbox, in full access", decide.Input{Policy: "on-failure", Sandbox: full, Command: plain}, decide.Run},
		{"approved for the session", decide.Input{Policy: "untrusted", Sandbox: write, Command: plain, SandboxAvailable: true, SessionApproved: true}, decide.RunSandboxed},
		{"approved for the session, in full access", decide.Input{Policy: "untrusted", Sandbox: full, Command: plain, SessionApproved: true}, decide.Run},
		{"approved for the session, escalated", decide.Input{Policy: "on-request", Sandbox: write, Command: plain, SandboxAvailable: true, SessionApproved: true, Escalated: true}, decide.Ask},
		{"approved for the session, escalated under untrusted", decide.Input{Policy: "untrusted", Sandbox: write, Command: plain, SandboxAvailable: true, SessionApproved: true, Escalated: true}, decide.Ask},
		{"escalated under an unknown policy", decide.Input{Policy: "sometimes", Sandbox: write, Command: plain, SandboxAvailable: true, Escalated: true}, decide.Refuse},
		{"approved for the session, without a sandbox", decide.Input{Policy: "never", Sandbox: readOnly, Command: plain, SessionApproved: true}, decide.Refuse},
		{"git", decide.Input{Policy: "untrusted", Sandbox: readOnly, Command: git, SandboxAvailable: true}, decide.RunReadOnly},
		{"git, by the strict rules", decide.Input{Policy: "untrusted", Sandbox: readOnly, Command: git, SandboxAvailable: true, Strict: true}, decide.Ask},
		{"code of this program that reads", decide.Input{Policy: "untrusted", Sandbox: readOnly, Command: plain, SandboxAvailable: true, Reads: true}, decide.RunReadOnly},
		{"code that reads the working folder", decide.Input{Policy: "untrusted", Sandbox: readOnly, SandboxAvailable: true, Reads: true, Near: true}, decide.RunReadOnly},
		{"code that reads the working folder, without a sandbox", decide.Input{Policy: "never", Sandbox: readOnly, Reads: true, Near: true}, decide.Run},
		{"code that reads elsewhere, without a sandbox", decide.Input{Policy: "untrusted", Sandbox: readOnly, Reads: true}, decide.Ask},
		{"a command in the working folder, without a sandbox", decide.Input{Policy: "never", Sandbox: readOnly, Command: safe, Near: true}, decide.Refuse},
	} {
		if got := decide.Exec(tt.in); got.Action != tt.want || got.Action == decide.Refuse && got.Reason == "" {
			t.Errorf("%s: %v (%s), want %v", tt.name, got.Action, got.Reason, tt.want)
		}
	}
	for _, in := range []decide.PatchInput{{Policy: "sometimes", Sandbox: full, Inside: true}, {Policy: "never", Sandbox: readOnly, Inside: true}, {Policy: "never", Sandbox: "none", Inside: true}} {
		must.Equal(t, fmt.Sprintf("a patch, %+v", in), decide.Refuse, decide.Patch(in).Action)
	}
}

// TestPolicies checks that testdata/policies.txt, to which docs/approvals.md leads, is what Exec, Patch and
// AfterDenial decide.
func TestPolicies(t *testing.T) {
	cell := func(p protocol.ApprovalPolicy, v decide.Verdict) string {
		switch v.Action {
		case decide.RunReadOnly:
			return "may, read-only"
		case decide.RunSandboxed:
			if decide.AfterDenial(p).Action == decide.Ask {
				return "may, in the sandbox; then asks"
			}
			return "may, in the sandbox"
		case decide.Run:
			return "**may**"
		case decide.Ask:
			return "asks"
		}
		return "never"
	}
	var want strings.Builder
	for _, p := range []protocol.ApprovalPolicy{"untrusted", "on-request", "on-failure", "never"} {
		for _, mode := range []protocol.SandboxMode{"read-only", "workspace-write", "danger-full-access"} {
			command := func(in decide.Input) string {
				in.Policy, in.Sandbox = p, mode
				return cell(p, decide.Exec(in))
			}
			patch := func(inside bool) string {
				return cell(p, decide.Patch(decide.PatchInput{Policy: p, Sandbox: mode, Inside: inside}))
			}
			known, other := []string{"ls"}, []string{"touch", "x"}
			fmt.Fprintf(&want, "| `%s` | `%s` | %s | %s | %s | %s | %s | %s |\n", p, mode,
				command(decide.Input{Command: known, SandboxAvailable: true}), command(decide.Input{Command: other, SandboxAvailable: true}),
				command(decide.Input{Command: other, SandboxAvailable: true, Escalated: true}), command(decide.Input{Command: other}), patch(true), patch(false))
		}
	}
	table := must.Get(os.ReadFile("testdata/policies.txt"))(t)
	if !strings.HasSuffix(string(table), "|---|---|---|---|---|---|---|---|\n"+want.String()) {
		t.Errorf("testdata/policies.txt has another table than\n%s", want.String())
	}
}
