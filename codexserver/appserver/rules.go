package appserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// rules are what limits the commands of a thread. Another program can change them while a
// conversation of this engine goes on.
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

// wider returns in words what the rules allow beyond those of base, or "". What cannot be
// compared counts as wider.
func (r rules) wider(base rules) string {
	is, was := slices.Index(sandboxTypes, r.sandbox.Type), slices.Index(sandboxTypes, base.sandbox.Type)
	asks, asked := slices.Index(policyWords, r.policy), slices.Index(policyWords, base.policy)
	differs := func(a, b string) bool { return a != b && a != "" && a != "null" }
	switch {
	case r.sandbox.Type != base.sandbox.Type && (is < 0 || was < 0 || is > was):
		return fmt.Sprintf("the sandbox is now %q and was %q", r.sandbox.Type, base.sandbox.Type)
	case network(&r.sandbox) && !network(&base.sandbox) && base.sandbox.Type != apptypes.SandboxPolicyDangerFullAccess:
		return "commands now have network access"
	case r.sandbox.Type == apptypes.SandboxPolicyWorkspaceWrite && base.sandbox.Type == apptypes.SandboxPolicyWorkspaceWrite && r.cwd != base.cwd:
		return fmt.Sprintf("commands may now write in %s, and not in %s", r.cwd, base.cwd)
	case r.policy != base.policy && (asks < 0 || asked < 0 || asks > asked):
		return fmt.Sprintf("the approval policy is now %.100s and was %.100s", r.policy, base.policy)
	case differs(r.reviewer, base.reviewer) && r.reviewer != "user":
		return fmt.Sprintf("approvals are now decided by %q", r.reviewer)
	case differs(r.profile, base.profile):
		return "it has another profile of permissions"
	}
	if r.sandbox.Type == apptypes.SandboxPolicyWorkspaceWrite && base.sandbox.Type == apptypes.SandboxPolicyWorkspaceWrite {
		for _, root := range r.sandbox.WritableRoots {
			if !slices.Contains(base.sandbox.WritableRoots, root) {
				return fmt.Sprintf("commands may now write in %s", root)
			}
		}
	}
	return ""
}

// network reports whether commands in the sandbox may reach the network.
func network(s *apptypes.SandboxPolicy) bool {
	switch string(s.NetworkAccess) {
	case "", "false", "null", `"restricted"`:
		return s.Type == apptypes.SandboxPolicyDangerFullAccess
	}
	return true
}

// unloosened returns an error if another program has given the thread wider rules than the
// conversation has.
func (c *conversation) unloosened(t *thread) error {
	if !t.child.shared {
		return nil
	}
	c.mu.Lock()
	base := c.rules
	c.mu.Unlock()
	if why := t.ruling().wider(base); why != "" {
		return &engine.RefusedError{Err: fmt.Errorf("another program has changed this conversation: %s; change that back there, or begin a new conversation with codex", why)}
	}
	return nil
}

// ruled records the rules that another program or this one has set. A running turn whose
// rules become wider is aborted.
func (t *thread) ruled(now rules) {
	t.mu.Lock()
	t.rules = now
	r := t.running
	t.mu.Unlock()
	t.child.programs.Given(now.cwd)
	if now.sandbox.Type == apptypes.SandboxPolicyWorkspaceWrite {
		t.child.programs.Add(append([]string{now.cwd}, now.sandbox.WritableRoots...)...)
	}
	if r == nil || !t.child.shared {
		return
	}
	r.mu.Lock()
	why := now.wider(r.rules)
	if why != "" && r.aborted == nil && !r.ended {
		r.aborted = fmt.Errorf("another program has changed this conversation: %s", why)
	} else {
		why = ""
	}
	r.mu.Unlock()
	if why != "" {
		r.stop()
	}
}
