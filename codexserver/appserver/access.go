package appserver

import (
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// grants returns what the parameters and Codex's configuration give a conversation in a folder. The
// policy is "" where only Codex knows it.
func (p *threadParams) grants(file *configuration, cwd string) (g box.Grant, err error) {
	g.Cwd, g.Policy = cwd, protocol.ApprovalPolicy(p.ApprovalPolicy)
	if g.Sandbox, err = p.limits(file, cwd); err != nil {
		return g, err
	}
	if value[string](p.setting(file.keys, "web_search")) != "disabled" || value[bool](p.setting(file.keys, "features", "standalone_web_search")) {
		g.Search = p.says(file.keys, "web_search", "tools.web_search", "features.web_search_request", "features.web_search_cached", "features.standalone_web_search")
	}
	g.Provider = cmp.Or(value[string](p.setting(file.keys, "model_provider")), builtIn)
	g.Address, g.Endpoint = p.provides(file.keys, g.Provider)
	opened := g.Sandbox
	if opened.Mode != protocol.SandboxWorkspaceWrite {
		if opened, err = p.workspace(file, cwd); err != nil {
			return g, err
		}
	}
	g.Named = box.Writable(opened, "", os.Environ())
	return g, nil
}

// policyIn returns the approval policy that Codex's configuration gives a conversation.
func (p *threadParams) policyIn(c *child, file *configuration, cwd string) protocol.ApprovalPolicy {
	if policy := cmp.Or(p.ApprovalPolicy, c.policy); policy != "" {
		return policyWord(protocol.ApprovalPolicy(policy))
	}
	if raw := p.setting(file.keys, "approval_policy"); isSet(raw) {
		return policyWord(policyOf(raw))
	}
	if slices.Contains(trusts(file.keys, cwd), "untrusted") {
		return protocol.ApprovalUntrusted
	}
	return protocol.ApprovalOnRequest
}

// provides returns the address of a model provider, and all that the configuration says of it.
func (p *threadParams) provides(file map[string]stdjson.RawMessage, id string) (address, all string) {
	const providers, own = "model_providers", "openai_base_url"
	raw, ok := p.Config[providers+"."+id+".base_url"]
	if !ok {
		raw = table(table(file[providers])[id])["base_url"]
	}
	if id == builtIn && isSet(p.setting(file, own)) {
		raw = p.setting(file, own)
	}
	return value[string](raw), p.says(file, providers+"."+id, own, "chatgpt_base_url")
}

// says returns what the configuration and the keys of the thread say of keys of the top level or of a table,
// and of what lies below them, to compare it.
func (p *threadParams) says(file map[string]stdjson.RawMessage, keys ...string) string {
	var all strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&all, "%s = %s\n", key, p.setting(file, strings.SplitN(key, ".", 2)...))
		for _, below := range slices.Sorted(maps.Keys(p.Config)) {
			if strings.HasPrefix(below, key+".") {
				fmt.Fprintf(&all, "%s = %s\n", below, p.Config[below])
			}
		}
	}
	return all.String()
}

// beyond returns what a conversation may do beyond base, the configuration. In full access Codex lets
// the model search live, and commands reach the network.
func beyond(g, base *box.Grant) protocol.Access {
	a := g.Beyond(base, os.Environ())
	if a.Mode == protocol.SandboxDangerFullAccess {
		a.Network, a.WebSearch = !base.Sandbox.NetworkAccess, g.Search != ""
	}
	return a
}

// narrow takes from the policies of g what goes beyond those of base.
func narrow(g, base *box.Grant) {
	s, b := &g.Sandbox, &base.Sandbox
	switch write := protocol.SandboxWorkspaceWrite; {
	case box.Width(s.Mode) > box.Width(b.Mode):
		*s = *b
	case s.Mode == write && b.Mode == write:
		s.WritableRoots = slices.DeleteFunc(slices.Clone(s.WritableRoots), func(root string) bool { return !slices.Contains(b.WritableRoots, root) })
		s.ExcludeSlashTmp = s.ExcludeSlashTmp || b.ExcludeSlashTmp
		s.ExcludeTmpdirEnvVar = s.ExcludeTmpdirEnvVar || b.ExcludeTmpdirEnvVar
	}
	s.NetworkAccess = s.NetworkAccess && (b.NetworkAccess || b.Mode == protocol.SandboxDangerFullAccess)
	if is, was := slices.Index(policyWords, g.Policy), slices.Index(policyWords, base.Policy); g.Policy != base.Policy && (is < 0 || was < 0 || is > was) {
		g.Policy = base.Policy
	}
}

// restore gives a resumed thread what the configuration does. What its call does not choose, Codex
// would take from the thread's last turn, and its model provider cannot be another one than before.
func (p *threadParams) restore(was *summary, file *configuration) {
	p.chosen = p.chooses() || p.ApprovalPolicy != ""
	if !p.chooses() {
		p.now.Sandbox = p.base.Sandbox
	}
	if p.ApprovalPolicy == "" {
		p.now.Policy = p.base.Policy
	}
	p.ApprovalsReviewer = cmp.Or(value[string](p.setting(file.keys, "approvals_reviewer")), byUser)
	if was.Provider != "" {
		p.now.Provider = was.Provider
		p.now.Address, p.now.Endpoint = p.provides(file.keys, was.Provider)
	}
}

// keep gives a resumed thread what its last turn had, as far as the configuration allows or, if keep
// returns true, whole.
func (p *threadParams) keep(had *box.Grant, keep func(protocol.Access) bool) {
	if p.chosen {
		return
	}
	before := p.now
	before.Cwd, before.Policy, before.Sandbox = had.Cwd, had.Policy, had.Sandbox
	if a := beyond(&before, &p.base); !a.IsZero() && (keep == nil || !keep(a)) {
		narrow(&before, &p.base)
	}
	p.now = before
}
