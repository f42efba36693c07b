//go:build unix

package tool_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const retry = "ask: command failed; retry without sandbox?"

// TestApprovalMatrix combines every approval policy with every sandbox mode, for a command that is known to be safe, a
// plain one, one that asks for more, and one that the sandbox stops. The user approves everything, and the conversation
// has a network.
func TestApprovalMatrix(t *testing.T) {
	const (
		free     = "begin, end 0"
		confined = "begin, confined, end 0"
		readOnly = "begin, confined to read-only, end 0"
		asked    = "ask, begin, end 0"
		refused  = "refused"
	)
	type row struct{ safe, plain, escalated, denied string }
	tests := map[protocol.ApprovalPolicy]struct{ confined, danger row }{
		"untrusted": {row{readOnly, asked, "ask: because, begin, end 0", "ask, begin, end 66"}, row{readOnly, asked, "ask: because, begin, end 0", "ask, begin, end 66"}},
		"on-failure": {
			row{confined, confined, refused, "begin, confined, end 66, " + retry + ", begin, end 66"},
			row{free, free, refused, "begin, end 66"},
		},
		"on-request": {row{confined, confined, "ask: because, begin, end 0", "begin, confined, end 66"}, row{free, free, free, "begin, end 66"}},
		"never":      {row{confined, confined, refused, "begin, confined, end 66"}, row{free, free, refused, "begin, end 66"}},
	}
	for policy, want := range tests {
		for _, mode := range protocol.SandboxModes() {
			expect := want.confined
			if mode == protocol.SandboxDangerFullAccess {
				expect = want.danger
			}
			for _, c := range []struct {
				name, members, want string
				argv                []string
			}{
				{"safe", "", expect.safe, []string{"true"}},
				{"plain", "", expect.plain, []string{"sh", "-c", "exit 0"}},
				{"escalated", `,"with_escalated_permissions":true,"justification":"because"`, expect.escalated, []string{"sh", "-c", "exit 0"}},
				{"denied", "", expect.denied, []string{"sh", "-c", "exit 66"}},
				{"safe, with a rule", "", personal(expect.safe), []string{"/bin/true"}},
				{"plain, with a rule", "", personal(expect.plain), []string{"bash", "-c", "exit 0"}},
				{"escalated, with a rule", `,"with_escalated_permissions":true,"justification":"because"`, personal(expect.escalated), []string{"bash", "-c", "exit 0"}},
				{"denied, with a rule", "", personal(expect.denied), []string{"bash", "-c", "exit 66"}},
			} {
				if c.name == "safe, with a rule" && policy == "untrusted" {
					continue // with a folder it is not known to be safe
				}
				t.Run(fmt.Sprintf("%s %s %s", policy, mode, c.name), func(t *testing.T) {
					h := &host{answer: elicit.ApprovedForSession}
					o := tool.Options{Sandbox: &fakeSandbox{host: h}, Ask: [][]string{{"true"}, {"bash"}}}
					if !strings.HasSuffix(c.name, "rule") {
						h.answer, o.Ask = elicit.Approved, nil
					}
					turn := turnOf(o, h, t.TempDir(), policy, mode)
					turn.SandboxPolicy.NetworkAccess = true
					res := called(t, turn, shellCall(c.members, c.argv...))
					steps := strings.ReplaceAll(c.want, "confined,", fmt.Sprintf("confined to %s with network,", mode))
					must.Equal(t, "steps", steps, h.steps())
					for _, req := range h.asked() {
						must.Equal(t, "confinable", policy == "untrusted" && c.members == "", req.Confinable)
					}
					if c.want == refused && !strings.HasPrefix(res.Output, "not run: ") {
						t.Errorf("the model receives %q", res.Output)
					}
					if c.want != refused && !strings.HasPrefix(res.Output, `{"output":`) {
						t.Errorf("the model receives %q", res.Output)
					}
				})
			}
		}
	}
}

// personal returns the steps of a command that a rule asks about.
func personal(steps string) string {
	where := ""
	switch {
	case steps == "refused" || strings.HasPrefix(steps, "ask"):
		return steps
	case strings.Contains(steps, "confined to read-only"):
		where = "; if approved, it runs in the read-only sandbox"
	case strings.Contains(steps, "confined"):
		where = "; if approved, it runs in the sandbox"
	}
	return "ask: a rule of the user asks about this command" + where + ", " + steps
}

// TestWithoutSandbox runs commands twice where the system has no sandbox, approved for the session, which counts once.
func TestWithoutSandbox(t *testing.T) {
	plain, safe := []string{"sh", "-c", "exit 0"}, []string{"true"}
	for _, tt := range []struct {
		policy protocol.ApprovalPolicy
		argv   []string
		want   string
	}{
		{"untrusted", plain, "ask, begin, end 0"},
		{"untrusted", safe, "ask: OBSTACLE, begin, end 0"},
		{"on-failure", plain, "ask: OBSTACLE, begin, end 0"},
		{"on-failure", safe, "ask: OBSTACLE, begin, end 0"},
		{"on-request", plain, "ask: OBSTACLE, begin, end 0"},
		{"on-request", safe, "ask: OBSTACLE, begin, end 0"},
		{"never", plain, "refused"},
		{"never", safe, "refused"},
	} {
		const obstacle = "there is no sandbox on this system"
		h := &host{answer: elicit.ApprovedForSession}
		turn := turnOf(tool.Options{Environ: environ}, h, t.TempDir(), tt.policy, "workspace-write")
		called(t, turn, shellCall("", tt.argv...))
		res := called(t, turn, shellCall("", tt.argv...))
		twice := strings.ReplaceAll(tt.want, "OBSTACLE", obstacle)
		if twice += ", " + twice; tt.want == "refused" && !strings.HasPrefix(res.Output, "not run: "+obstacle) {
			t.Errorf("%s %q: the model receives %q", tt.policy, tt.argv, res.Output)
		}
		must.Equal(t, fmt.Sprintf("%s %q: steps", tt.policy, tt.argv), twice, h.steps())
		warnings := 0
		for _, m := range h.all {
			if m, ok := m.(protocol.BackgroundEvent); ok && m.Refused == nil {
				warnings++
			}
		}
		for _, req := range h.asked() {
			if req.Confinable || !req.Once {
				t.Errorf("%s %q: a rule, or an approval for the session, may keep it in a sandbox that is missing", tt.policy, tt.argv)
			}
			must.Equal(t, fmt.Sprintf("%s %q: the engine's reason is shown as the model's", tt.policy, tt.argv), req.Reason != "", req.FromEngine)
		}
		wouldConfine := 1
		if strings.HasPrefix(tt.want, "ask,") {
			wouldConfine = 0
		}
		must.Equal(t, fmt.Sprintf("%s %q: the user is warned", tt.policy, tt.argv), wouldConfine, warnings)
	}
}

// TestReplacedFolder checks that nothing runs and no question is asked after a writable folder
// was replaced, neither for a known safe command nor for one that would leave the sandbox.
func TestReplacedFolder(t *testing.T) {
	replaced := fmt.Errorf("the folder /work %w: it was /work and is now /elsewhere", box.ErrReplaced)
	for _, policy := range protocol.ApprovalPolicies() {
		h := &host{answer: elicit.Approved}
		turn := turnOf(tool.Options{Environ: environ, Sandbox: &fakeSandbox{missing: replaced}}, h, t.TempDir(), policy, "workspace-write")
		steps := ""
		for _, call := range []tool.Call{
			shellCall("", "sh", "-c", "exit 0"), shellCall("", "ls"), shellCall(`,"with_escalated_permissions":true`, "ls"),
		} {
			res, err := turn.Call(t.Context(), call)
			steps = strings.TrimPrefix(steps+", refused", ", ")
			if err != nil || h.steps() != steps || res.Output != "not run: the folder /work was replaced: it was /work and is now /elsewhere" {
				t.Errorf("%s: %q, steps %q, %v", policy, res.Output, h.steps(), err)
			}
		}
	}
}

func TestPatchMatrix(t *testing.T) {
	const (
		asked    = "ask patch, patch begin auto=false, patch end true, diff"
		inside   = "patch begin auto=true, confined, patch end true, diff"
		free     = "patch begin auto=true, patch end true, diff"
		tried    = "patch begin auto=true, patch end false, " + retry + ", patch begin auto=false, patch end true, diff"
		rejected = "refused"
	)
	// Columns: read-only, workspace-write inside, outside, in .git, what another program obeys, danger-full-access.
	for policy, want := range map[protocol.ApprovalPolicy][6]string{
		"untrusted":  {asked, asked, asked, asked, asked, asked},
		"on-failure": {tried, inside, tried, tried, tried, free},
		"on-request": {asked, inside, asked, asked, asked, free},
		"never":      {rejected, inside, rejected, rejected, rejected, free},
	} {
		for i, c := range []struct {
			mode protocol.SandboxMode
			path string
		}{
			{"read-only", "new.txt"}, {"workspace-write", "new.txt"}, {"workspace-write", "../out.txt"},
			{"workspace-write", ".git/hooks/x"}, {"workspace-write", "new/.vscode/tasks.json"}, {"danger-full-access", "../out.txt"},
		} {
			byTool := func(t *testing.T, call tool.Call) {
				h := &host{answer: elicit.Approved}
				s := &fakeSandbox{host: h}
				if want[i] == tried && i != 3 && i != 4 { // those the tool stops itself
					s.forbid = &fs.PathError{Op: "open", Path: c.path, Err: fs.ErrPermission}
				}
				work, _ := workspace(t)
				res := called(t, turnOf(tool.Options{Sandbox: s, FileTools: true}, h, work, policy, c.mode), call)
				must.Equal(t, "steps", want[i], h.steps())
				_, err := os.Stat(filepath.Join(work, c.path))
				if written := err == nil; written != (want[i] != rejected) {
					t.Errorf("written: %t; the model receives %q", written, res.Output)
				}
			}
			text := "*** Begin Patch\n*** Add File: " + c.path + "\n+x\n*** End Patch"
			write, _ := fileCall(text)
			t.Run(fmt.Sprintf("%s %d", policy, i), func(t *testing.T) { byTool(t, shellCall("", "apply_patch", text)) })
			t.Run(fmt.Sprintf("%s %d write", policy, i), func(t *testing.T) { byTool(t, write) })
		}
	}
}

// TestPatchWithoutSandbox checks that patches inside the writable folders are applied if
// there is no sandbox, or one that confines only programs, but not if the sandbox fails.
func TestPatchWithoutSandbox(t *testing.T) {
	none, programs := &fakeSandbox{missing: box.ErrUnavailable}, &fakeSandbox{forbid: box.ErrUnavailable}
	broken := &fakeSandbox{missing: errors.New("the workspace was replaced")}
	for _, tt := range []struct {
		name       string
		box        *fakeSandbox
		policy     protocol.ApprovalPolicy
		path, want string
	}{
		{"none", none, "never", "new.txt", "patch begin auto=true, patch end true, diff"},
		{"broken", broken, "never", "new.txt", "patch begin auto=true, patch end false"},
		{"only for programs", programs, "on-failure", "new.txt", "patch begin auto=true, confined, patch end true, diff"},
		{"only for programs, outside", programs, "on-failure", "../new.txt", "patch begin auto=true, patch end false, " + retry},
	} {
		h := &host{answer: elicit.Denied}
		tt.box.host = h
		work, _ := workspace(t)
		turn := turnOf(tool.Options{Sandbox: tt.box}, h, work, tt.policy, "workspace-write")
		text := "*** Begin Patch\n*** Add File: " + tt.path + "\n+x\n*** End Patch"
		called(t, turn, shellCall("", "apply_patch", text))
		must.Equal(t, tt.name+": steps", tt.want, h.steps())
	}
}

// TestSession approves a command for the session in each sandbox mode. The same words in the same folder then run again
// without a question: in the sandbox, or outside with full access. Everything else is asked about.
func TestSession(t *testing.T) {
	const (
		asked   = "ask, begin, end 0"
		free    = "begin, end 0"
		stopped = "ask, begin, end 66"
		inside  = "ask: the sandbox stopped the command, which was allowed only inside; retry without sandbox?"
	)
	script := func(code int) []string { return []string{"sh", "-c", fmt.Sprintf("exit %d", code)} }
	for _, mode := range protocol.SandboxModes() {
		confined := func(code int) string { return fmt.Sprintf("begin, confined to %s, end %d", mode, code) }
		again, escape := confined(0), confined(66)+", "+inside
		if mode == protocol.SandboxDangerFullAccess {
			again, escape = free, "begin, end 66"
		}
		for _, tt := range []struct {
			name        string
			first, then []string
			members     string
			policy      func(*tool.Turn) // what changes before the second call
			want        [2]string
		}{
			{name: "the same", first: script(0), then: script(0), want: [2]string{asked, again}},
			{name: "that the sandbox stops", first: script(66), then: script(66), want: [2]string{stopped, escape}},
			{name: "other words", first: script(0), then: append(script(0), "x"), want: [2]string{asked, "ask"}},
			{name: "two words as one", first: append(script(0), "a", "b"), then: append(script(0), "a b"), want: [2]string{asked, "ask"}},
			{name: "a word in quotes as two", first: append(script(0), `a" "b`), then: append(script(0), "a", "b"), want: [2]string{asked, "ask"}},
			{name: "without an empty word", first: append(script(0), ""), then: script(0), want: [2]string{asked, "ask"}},
			{name: "another folder", first: script(0), then: script(0), members: `,"workdir":"/"`, want: [2]string{asked, "ask"}},
			{name: "another sandbox", first: script(0), then: script(0), policy: func(t *tool.Turn) { t.SandboxPolicy.NetworkAccess = true }, want: [2]string{asked, "ask"}},
		} {
			t.Run(fmt.Sprintf("%s/%s", mode, tt.name), func(t *testing.T) {
				h := &host{answer: elicit.ApprovedForSession}
				turn := turnOf(tool.Options{Environ: environ, Sandbox: &fakeSandbox{host: h}}, h, t.TempDir(), "untrusted", mode)
				call := func(members string, argv []string) string {
					h.trace = nil
					called(t, turn, shellCall(members, argv...))
					return h.steps()
				}
				got := [2]string{call("", tt.first)}
				h.answer = elicit.Denied
				if tt.policy != nil {
					tt.policy(turn)
				}
				got[1] = call(tt.members, tt.then)
				must.Equal(t, "steps", tt.want, got)
			})
		}
	}
}
