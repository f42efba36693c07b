package native_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestSetupInstalls has npm install what a worktree needs, from a registry that only the network by the host reaches, and from one
// that only a command outside of the sandbox does.
func TestSetupInstalls(t *testing.T) {
	world := internet(t)
	local, line := servertest.Registry(t, t.TempDir())
	const registry, far = "registry.example.com", "https://registry.example.com"
	const hostAsked = "Allow the network, to the host `registry.example.com`?\nIt is asked for by `npm ci --no-audit --no-fund` in "
	const outAsked = "the sandbox stopped the set-up of the worktree; retry without sandbox?"
	allow := approval.Rules{Hosts: approval.HostRules{Allow: []string{registry}}}
	for _, tt := range []struct {
		name, registry string
		hosts          bool // by the host
		policy         protocol.ApprovalPolicy
		rules          approval.Rules
		answer         elicit.Decision
		asked          string
		used           []string // hosts by each run
		status         protocol.TurnStatus
	}{
		{"a rule allows the host", far, true, "never", allow, elicit.Denied, "", []string{registry}, protocol.StatusCompleted},
		{"a person allows the host", far, true, "on-request", approval.Rules{}, elicit.Approved, hostAsked, []string{registry}, protocol.StatusCompleted},
		{"a person declines the host", far, true, "on-request", approval.Rules{}, elicit.Denied, hostAsked, []string{""}, protocol.StatusFailed},
		{"nobody allows the host", far, true, "never", approval.Rules{}, elicit.Approved, "", []string{""}, protocol.StatusFailed},
		{"a person lets it out once", local, false, "on-request", approval.Rules{}, elicit.Approved, outAsked, []string{"", ""}, protocol.StatusCompleted},
		{"a person does not let it out", local, false, "on-request", approval.Rules{}, elicit.Denied, outAsked, []string{""}, protocol.StatusFailed},
		{"it may not leave", local, false, "never", approval.Rules{}, elicit.Approved, "", []string{""}, protocol.StatusFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOnline(t, world, tt.policy, tt.rules)
			if !tt.hosts {
				native.SetHosts(o.engine, nil)
			}
			servertest.Install(t, filepath.Join(o.dir, "work"), tt.registry)
			o.options.Calls.Setup = "npm ci --no-audit --no-fund"
			if !tt.hosts {
				o.options.Calls.Setup = line
			}
			o.server = codexserver.New(o.engine, o.options)
			o.answer, o.arguments["worktree"] = tt.answer, true
			c := o.call(t)
			must.Equal(t, "status of "+c.Content, tt.status, c.Status)
			works := tt.status == protocol.StatusCompleted
			must.Equal(t, "requests to the model", map[bool]int{true: 1, false: 0}[works], len(o.provider.Requests()))
			servertest.Installed(t, c.Worktree.Path, works)
			asked := strings.Join(o.questions, "\n")
			must.Equal(t, "questions", map[bool]int{true: 1, false: 0}[tt.asked != ""], len(o.questions))
			if !strings.Contains(asked, tt.asked) {
				t.Errorf("asked %s", asked)
			}
			var used []string
			for _, end := range o.kept(t, record.Ends) {
				if end.Words == "" {
					used = append(used, strings.Join(end.Hosts, " "))
				}
			}
			must.Equal(t, "used", tt.used, used)
		})
	}
}
