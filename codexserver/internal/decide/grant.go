package decide

import (
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// Grant is what a configuration, or a call, gives a conversation.
type Grant struct {
	Cwd     string
	Policy  protocol.ApprovalPolicy // Codex also has finer rules, which are JSON
	Sandbox protocol.SandboxPolicy  // of its commands
	// Named are the folders, without links, that a configuration names as writable, whatever the sandbox.
	Named []string
	// Search is all that is said of the web search, to compare it; "" is none.
	Search string
	// Provider is the name of the model provider, and Address its address, "" for its own default.
	Provider, Address string
	// Endpoint is all that is said of the provider, to compare it.
	Endpoint string
}

// Beyond returns what g allows beyond base, which the configuration gives. Writable are the folders, without links, that the
// sandbox of g leaves writable.
func (g *Grant) Beyond(base *Grant, writable []string) protocol.Access {
	a := protocol.Access{Folder: paths.Real(g.Cwd)}
	mode, given := g.Sandbox.Mode, base.Sandbox.Mode
	writes := mode == protocol.SandboxWorkspaceWrite
	if writes || Width(mode) > Width(given) {
		a.Mode = mode
	}
	looser := base.Policy == protocol.ApprovalUntrusted && g.Policy != base.Policy // which asks about each command
	if mode == protocol.SandboxDangerFullAccess && (a.Mode != "" || looser) {
		a.Policy = g.Policy
	}
	a.WebSearch = g.Search != "" && g.Search != base.Search
	if g.Provider != base.Provider || g.Endpoint != base.Endpoint {
		a.Provider = g.Provider
		if g.Address != "" {
			a.Provider += " at " + g.Address
		}
	}
	if !writes || given == protocol.SandboxDangerFullAccess {
		return a
	}
	a.Network = g.Sandbox.NetworkAccess && !base.Sandbox.NetworkAccess
	known := append([]string{a.Folder}, base.Named...)
	for _, folder := range writable {
		if !slices.ContainsFunc(known, func(other string) bool { return paths.Below(folder, other) }) {
			a.Roots = append(a.Roots, folder)
		}
	}
	slices.Sort(a.Roots)
	a.Roots = slices.Compact(a.Roots)
	return a
}

// Narrow takes from g what goes beyond base. The approval policy stays only if it asks about each command.
func (g *Grant) Narrow(base *Grant) {
	s, b := &g.Sandbox, &base.Sandbox
	switch write := protocol.SandboxWorkspaceWrite; {
	case Width(s.Mode) > Width(b.Mode):
		*s = *b
	case s.Mode == write && b.Mode == write:
		s.ExcludeSlashTmp = s.ExcludeSlashTmp || b.ExcludeSlashTmp
		s.ExcludeTmpdirEnvVar = s.ExcludeTmpdirEnvVar || b.ExcludeTmpdirEnvVar
		s.WritableRoots = slices.DeleteFunc(slices.Clone(s.WritableRoots),
			func(root string) bool { return !slices.Contains(b.WritableRoots, root) })
	}
	s.NetworkAccess = s.NetworkAccess && (b.NetworkAccess || b.Mode == protocol.SandboxDangerFullAccess)
	if g.Policy != protocol.ApprovalUntrusted || !slices.Contains(protocol.ApprovalPolicies(), base.Policy) {
		g.Policy = base.Policy
	}
}

// Width orders the sandbox modes by what they allow. It is -1 for another one.
func Width(m protocol.SandboxMode) int { return slices.Index(protocol.SandboxModes(), m) }
