package policy

import "github.com/codexmcp/codexmcp/codexserver/protocol"

// FetchInput is the basis of a decision about reading a page of the web.
type FetchInput struct {
	// Policy is the conversation's approval policy.
	Policy protocol.ApprovalPolicy
	// Sandbox is its sandbox.
	Sandbox protocol.SandboxPolicy
	// Listed is true when the user's configuration lists the page's host.
	Listed bool
}

// DecideFetch decides what happens to a page of the web: [Run], [Ask] or [Refuse]. A host that is
// not listed is like a command that needs the network:
//
//	            listed  without network  workspace-write with network_access, danger-full-access
//	untrusted   run     ask              ask
//	on-request  run     ask              run
//	on-failure  run     ask              run
//	never       run     refuse           run
func DecideFetch(in FetchInput) Verdict {
	network := false
	switch in.Sandbox.Mode {
	case protocol.SandboxReadOnly:
	case protocol.SandboxWorkspaceWrite:
		network = in.Sandbox.NetworkAccess
	case protocol.SandboxDangerFullAccess:
		network = true
	default:
		return refusal("not fetched: unknown sandbox mode %q", in.Sandbox.Mode)
	}
	switch {
	case !known(in.Policy):
		return refusal("not fetched: unknown approval policy %q", in.Policy)
	case in.Listed, network && in.Policy != protocol.ApprovalUntrusted:
		return Verdict{Action: Run}
	case in.Policy == protocol.ApprovalNever:
		return refusal("not fetched: the sandbox has no network, fetch.hosts of codex-mcp.toml does not list the host, and the approval policy is never to ask")
	}
	return Verdict{Action: Ask}
}
