package terminal

import (
	"testing"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/go-cmp/cmp"
)

// TestTextsOf checks that blocks only for models are left out.
func TestTextsOf(t *testing.T) {
	forThose := func(text string, roles ...mcptypes.Role) *mcptypes.TextContent {
		return &mcptypes.TextContent{Text: text, Annotations: &mcptypes.Annotations{Audience: roles}}
	}
	r := &mcptypes.CallToolResult{Content: append(mcptypes.Text("why", "note"),
		forThose("all"), forThose("both", mcptypes.RoleAssistant, mcptypes.RoleUser), forThose("facts", mcptypes.RoleAssistant))}
	if d := cmp.Diff([]string{"why", "note", "all", "both"}, textsOf(r)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
