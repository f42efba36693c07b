package appserver

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// policyOf returns a policy of Codex: a word, or the JSON of finer rules.
func policyOf(raw json.RawMessage) protocol.ApprovalPolicy {
	var word protocol.ApprovalPolicy
	if json.Unmarshal(raw, &word) != nil {
		return protocol.ApprovalPolicy(raw)
	}
	return word
}

// wordOf returns a policy that is a word, "" for finer rules.
func wordOf(policy protocol.ApprovalPolicy) protocol.ApprovalPolicy {
	if slices.Contains(policyWords, policy) {
		return policy
	}
	return ""
}

// policyParam returns a policy as a turn takes it, nil for the thread's own.
func policyParam(policy protocol.ApprovalPolicy) json.RawMessage {
	if policy == "" {
		return nil
	}
	if strings.HasPrefix(string(policy), "{") {
		return json.RawMessage(policy)
	}
	raw, _ := json.Marshal(policy) // cannot fail
	return raw
}

// policyWords are the approval policies, the one that asks most first.
var policyWords = []protocol.ApprovalPolicy{protocol.ApprovalUntrusted, protocol.ApprovalOnRequest, protocol.ApprovalOnFailure, protocol.ApprovalNever}
