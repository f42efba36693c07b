package native_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// keptHost is a host that asks the kept rules, and accepts every rule that is offered.
type keptHost struct {
	*host
	kept  *rulefile.Store
	trace []string
}

func (h *keptHost) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	d := board.New(&board.Options{Kept: h.kept}, nil).Decide(ctx, &approval.Request{Event: r, Question: &elicit.Question{}})
	if d.By == approval.ByRule {
		return d.Outcome
	}
	rule, ok := rulefile.Offer(&r)
	if ok {
		_, err := h.kept.Add(rulefile.Kept{Rule: rule, By: "client", Words: rule.Words()})
		ok = err == nil
	}
	if !ok {
		h.trace = append(h.trace, "asked")
		return elicit.Outcome{Decision: elicit.Denied}
	}
	h.trace = append(h.trace, "accepted")
	return elicit.Outcome{Decision: elicit.Approved, Confined: true}
}

// TestKeptRules accepts each rule that is offered, and runs further commands.
func TestKeptRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, mode string
		named      bool // the configuration makes the folder of the rules writable
		commands   []string
		want       string
	}{
		{"in the sandbox", "workspace-write", false, []string{"git add x.go", "git add x.go", "git add y.go"}, "accepted, inside, inside, accepted, inside"},
		{"without a sandbox", "danger-full-access", false, []string{"git add x.go", "git add x.go"}, "accepted, inside, inside"},
		{"a script", "workspace-write", false, []string{"bash -lc |git add x.go >out", "bash -lc |git add x.go >out", "bash -lc |git add x.go"}, "accepted, inside, inside, accepted, inside"},
		{"the rules are named as writable", "workspace-write", true, []string{"git add x.go", "git add x.go"}, "accepted, inside, inside"}, // and are not
	} {
		t.Run(tt.name, func(t *testing.T) {
			var turns []providertest.Turn
			for _, c := range tt.commands {
				line, last, whole := strings.Cut(c, "|")
				argv := strings.Fields(line)
				if whole {
					argv = append(argv, last)
				}
				turns = append(turns, providertest.Call(providertest.Tool("c", "shell", map[string]any{"command": argv})))
			}
			b := setup(t, "", native.Limits{}, append(turns, providertest.Say("ok"))...)
			servertest.Git(t, b.cwd, "init", "-q")
			for _, name := range []string{"x.go", "y.go"} {
				if err := os.WriteFile(filepath.Join(b.cwd, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cfg := protocol.Config{Cwd: b.cwd, ApprovalPolicy: "untrusted", Sandbox: protocol.SandboxMode(tt.mode)}
			if tt.named {
				root, err := json.Marshal([]string{filepath.Join(b.home, "codex-mcp")})
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(filepath.Join(b.home, "codex-mcp"), 0o700); err != nil {
					t.Fatal(err)
				}
				text, _ := os.ReadFile(filepath.Join(b.home, "config.toml"))
				text = append(text, "\n[sandbox_workspace_write]\nwritable_roots = "+string(root)+"\n"...)
				if err := os.WriteFile(filepath.Join(b.home, "config.toml"), text, 0o600); err != nil {
					t.Fatal(err)
				}
				b.reopen(t)
			}
			h := &keptHost{host: &host{}, kept: rulefile.New(b.home, &rulefile.Options{Writable: b.engine.Traits().Reach})}
			h.on = func(m protocol.EventMsg) {
				if _, is := m.(protocol.ExecCommandEnd); is {
					h.trace = append(h.trace, "inside")
				}
			}
			conv, err := b.engine.Start(t.Context(), cfg, h)
			if err != nil {
				t.Fatal(err)
			}
			defer conv.Close()
			turn(t, conv, say("go"))
			if got := strings.Join(h.trace, ", "); got != tt.want {
				t.Errorf("%s, want %s; %q", got, tt.want, h.take())
			}
		})
	}
}
