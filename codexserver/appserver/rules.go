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
	sandbox apptypes.SandboxPolicy
	cwd     string
	policy  string // a word, or the JSON of finer rules
}

// policyOf returns a policy as rules have it.
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
