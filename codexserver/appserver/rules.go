package appserver

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// rules are what limits the commands of a thread.
type rules struct {
	sandbox  apptypes.SandboxPolicy
	cwd      string
	policy   string // a word, or the JSON of finer rules
	reviewer string // who decides: user, or another word; "" is the user
	profile  string // the JSON of a named profile of permissions, or null
}

// rules returns what Codex reports when it loads a thread.
func (r *threadReply) rules() rules {
	return rules{r.Sandbox, r.Cwd, policyOf(r.ApprovalPolicy), r.ApprovalsReviewer, string(r.ActivePermissionProfile)}
}

// rulesOf returns what Codex reports when the settings of a thread change.
func rulesOf(s *apptypes.ThreadSettings) rules {
	return rules{s.SandboxPolicy, s.Cwd, policyOf(s.ApprovalPolicy), s.ApprovalsReviewer, string(s.ActivePermissionProfile)}
}

func policyOf(raw json.RawMessage) string {
	var word string
	if json.Unmarshal(raw, &word) != nil {
		return string(raw)
	}
	return word
}

// word returns the approval policy, "" for finer rules.
func (r *rules) word() protocol.ApprovalPolicy {
	if slices.Contains(policyWords, r.policy) {
		return protocol.ApprovalPolicy(r.policy)
	}
	return ""
}

// policyParam returns a policy as a turn takes it, nil for the thread's own.
func policyParam(policy string) json.RawMessage {
	if policy == "" {
		return nil
	}
	if strings.HasPrefix(policy, "{") {
		return json.RawMessage(policy)
	}
	raw, _ := json.Marshal(policy) // cannot fail
	return raw
}

// with returns the rules with what a turn changes.
func (r rules) with(p *apptypes.TurnParams) rules {
	if p.SandboxPolicy != nil {
		r.sandbox = *p.SandboxPolicy
	}
	if p.Cwd != "" {
		r.cwd = p.Cwd
	}
	if p.ApprovalPolicy != nil {
		r.policy = policyOf(p.ApprovalPolicy)
	}
	return r
}

var (
	// sandboxTypes and sandboxModes are the same in the same order: the first allows least.
	sandboxTypes = []string{apptypes.SandboxPolicyReadOnly, apptypes.SandboxPolicyWorkspaceWrite, apptypes.SandboxPolicyDangerFullAccess}
	sandboxModes = []string{apptypes.SandboxModeReadOnly, apptypes.SandboxModeWorkspaceWrite, apptypes.SandboxModeDangerFullAccess}
	policyWords  = []string{string(protocol.ApprovalUntrusted), string(protocol.ApprovalOnRequest), string(protocol.ApprovalOnFailure), string(protocol.ApprovalNever)}
)

// network reports whether commands in the sandbox may reach the network.
func network(s *apptypes.SandboxPolicy) bool {
	switch string(s.NetworkAccess) {
	case "", "false", "null", `"restricted"`:
		return s.Type == apptypes.SandboxPolicyDangerFullAccess
	}
	return true
}

// ruled records the rules that Codex reports for the thread.
func (t *thread) ruled(now rules) {
	t.mu.Lock()
	t.rules = now
	t.mu.Unlock()
	t.child.programs.Given(now.cwd)
	if now.sandbox.Type == apptypes.SandboxPolicyWorkspaceWrite {
		t.child.programs.Add(append([]string{now.cwd}, now.sandbox.WritableRoots...)...)
	}
}
