package appserver

import (
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// granted is what a configuration gives a conversation.
type granted struct {
	rules
	named    []string // without links: what the configuration names as writable, also where the sandbox is read-only
	search   string   // all that the configuration says of the web search, to compare it; "" for none
	provider string   // the name of the model provider
	address  string   // of the provider, "" for its own default
	endpoint string   // all that the configuration says of the provider, to compare it
}

// grants returns what the parameters and Codex's configuration give a conversation in a folder. The
// policy is "" where only Codex knows it.
func (p *threadParams) grants(file *configuration, cwd string) (g granted, err error) {
	g.cwd, g.policy = cwd, p.ApprovalPolicy
	if g.sandbox, err = p.limits(file, cwd); err != nil {
		return g, err
	}
	if value[string](p.setting(file.keys, "web_search")) != "disabled" || value[bool](p.setting(file.keys, "features", "standalone_web_search")) {
		g.search = p.says(file.keys, "web_search", "tools.web_search", "features.web_search_request", "features.web_search_cached", "features.standalone_web_search")
	}
	g.provider = cmp.Or(value[string](p.setting(file.keys, "model_provider")), builtIn)
	g.address, g.endpoint = p.provides(file.keys, g.provider)
	opened := g.sandbox
	if opened.Type != apptypes.SandboxPolicyWorkspaceWrite {
		as, err := p.workspace(file, cwd)
		if err != nil {
			return g, err
		}
		opened = *sandboxOf(as)
	}
	g.named = writable(&opened, cwd)[1:] // without the working folder
	return g, nil
}

// policyIn returns the approval policy that Codex's configuration gives a conversation.
func (p *threadParams) policyIn(c *child, file *configuration, cwd string) string {
	if policy := cmp.Or(p.ApprovalPolicy, c.policy); policy != "" {
		return policyWord(policy)
	}
	if raw := p.setting(file.keys, "approval_policy"); isSet(raw) {
		return policyWord(policyOf(raw))
	}
	if slices.Contains(trusts(file.keys, cwd), "untrusted") {
		return string(protocol.ApprovalUntrusted)
	}
	return string(protocol.ApprovalOnRequest)
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

// rank orders sandboxes: a higher one allows more.
func rank(sandbox string) int {
	if i := slices.Index(sandboxTypes, sandbox); i >= 0 {
		return i
	}
	return len(sandboxTypes)
}

// modeOf returns the mode of a sandbox.
func modeOf(sandbox string) protocol.SandboxMode {
	return protocol.SandboxMode(sandboxModes[min(rank(sandbox), len(sandboxModes)-1)])
}

// beyond returns what a conversation may do beyond base, the configuration.
func (g *granted) beyond(base *granted) protocol.Access {
	a := protocol.Access{Folder: real(g.cwd)}
	write := g.sandbox.Type == apptypes.SandboxPolicyWorkspaceWrite
	if write || rank(g.sandbox.Type) > rank(base.sandbox.Type) {
		a.Mode = modeOf(g.sandbox.Type)
	}
	asked := base.policy == string(protocol.ApprovalUntrusted) // for each command
	if !write && rank(g.sandbox.Type) > 0 && (a.Mode != "" || asked && g.policy != base.policy) {
		a.Policy = protocol.ApprovalPolicy(g.policy)
	}
	a.Network = network(&g.sandbox) && !network(&base.sandbox)
	a.WebSearch = g.search != "" && (g.search != base.search || a.Mode == protocol.SandboxDangerFullAccess) // which Codex lets search live
	if g.provider != base.provider || g.endpoint != base.endpoint {
		a.Provider = g.provider
		if g.address != "" {
			a.Provider += " at " + g.address
		}
	}
	if write {
		known := append([]string{a.Folder}, base.named...)
		for _, folder := range writable(&g.sandbox, g.cwd) {
			if !slices.ContainsFunc(known, func(other string) bool { return paths.Below(folder, other) }) {
				a.Roots = append(a.Roots, folder)
			}
		}
		slices.Sort(a.Roots)
		a.Roots = slices.Compact(a.Roots)
	}
	return a
}

// within takes from the rules what goes beyond those of base.
func (r *rules) within(base *rules) {
	s, b := &r.sandbox, &base.sandbox
	switch write := apptypes.SandboxPolicyWorkspaceWrite; {
	case rank(s.Type) > rank(b.Type):
		*s = *b
	case s.Type == write && b.Type == write:
		s.WritableRoots = slices.DeleteFunc(slices.Clone(s.WritableRoots), func(root string) bool { return !slices.Contains(b.WritableRoots, root) })
		s.ExcludeSlashTmp = s.ExcludeSlashTmp || b.ExcludeSlashTmp
		s.ExcludeTmpdirEnvVar = s.ExcludeTmpdirEnvVar || b.ExcludeTmpdirEnvVar
		fallthrough
	default:
		if network(s) && !network(b) {
			s.NetworkAccess = stdjson.RawMessage("false")
		}
	}
	if is, was := slices.Index(policyWords, r.policy), slices.Index(policyWords, base.policy); r.policy != base.policy && (is < 0 || was < 0 || is > was) {
		r.policy = base.policy
	}
}

// restore gives a resumed thread what the configuration does. What its call does not choose, Codex
// would take from the thread's last turn, and its model provider cannot be another one than before.
func (p *threadParams) restore(was *summary, file *configuration) {
	p.chosen = p.chooses() || p.ApprovalPolicy != ""
	if !p.chooses() {
		p.now.sandbox = p.base.sandbox
	}
	if p.ApprovalPolicy == "" {
		p.now.policy = p.base.policy
	}
	p.ApprovalsReviewer = cmp.Or(value[string](p.setting(file.keys, "approvals_reviewer")), byUser)
	if was.Provider != "" {
		p.now.provider = was.Provider
		p.now.address, p.now.endpoint = p.provides(file.keys, was.Provider)
	}
}

// keep gives a resumed thread what its last turn had, as far as the configuration allows or, if keep
// returns true, whole.
func (p *threadParams) keep(had *rules, keep func(protocol.Access) bool) {
	if p.chosen {
		return
	}
	before := p.now
	before.rules = *had
	if a := before.beyond(&p.base); !a.IsZero() && (keep == nil || !keep(a)) {
		before.within(&p.base.rules)
	}
	p.now = before
}
