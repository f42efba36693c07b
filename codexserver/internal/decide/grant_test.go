package decide_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestNarrow combines policies of then and of now: what either forbids is forbidden.
func TestNarrow(t *testing.T) {
	const write, full, untrusted, never = protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess, protocol.ApprovalUntrusted, protocol.ApprovalNever
	wide := protocol.SandboxPolicy{Mode: write, WritableRoots: []string{"/a", "/b"}, NetworkAccess: true}
	strict := protocol.SandboxPolicy{Mode: write, ExcludeSlashTmp: true, ExcludeTmpdirEnvVar: true}
	closed := protocol.SandboxPolicy{Mode: write, WritableRoots: []string{"/a", "/b"}}
	for _, tt := range []struct {
		name            string
		had, base, want decide.Grant
	}{
		{"the same", decide.Grant{Policy: never, Sandbox: wide}, decide.Grant{Policy: never, Sandbox: wide}, decide.Grant{Policy: never, Sandbox: wide}},
		{"strict then", decide.Grant{Policy: untrusted, Sandbox: strict}, decide.Grant{Policy: never, Sandbox: wide}, decide.Grant{Policy: untrusted, Sandbox: strict}},
		{"strict now", decide.Grant{Policy: never, Sandbox: wide}, decide.Grant{Policy: untrusted, Sandbox: strict}, decide.Grant{Policy: untrusted, Sandbox: strict}},
		{"no network", decide.Grant{Sandbox: wide}, decide.Grant{Sandbox: closed}, decide.Grant{Sandbox: closed}},
		{"full access then", decide.Grant{Policy: never, Sandbox: protocol.SandboxPolicy{Mode: full}}, decide.Grant{Policy: protocol.ApprovalOnRequest, Sandbox: strict}, decide.Grant{Policy: protocol.ApprovalOnRequest, Sandbox: strict}},
		{"full access now", decide.Grant{Sandbox: wide}, decide.Grant{Sandbox: protocol.SandboxPolicy{Mode: full}}, decide.Grant{Sandbox: wide}},
		{"finer rules", decide.Grant{Policy: untrusted, Sandbox: strict}, decide.Grant{Policy: "{}", Sandbox: strict}, decide.Grant{Policy: "{}", Sandbox: strict}},
	} {
		had := tt.had
		had.Narrow(&tt.base)
		must.Equal(t, tt.name, tt.want, had, cmpopts.EquateEmpty())
	}
}
