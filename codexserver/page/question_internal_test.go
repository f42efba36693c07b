package page

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/google/go-cmp/cmp"
)

// TestNotesOfPatch checks that the page shows what the engine says about a patch.
func TestNotesOfPatch(t *testing.T) {
	v := viewQuestion(&approval.Request{Question: &elicit.Question{}, Event: protocol.PatchApprovalRequest{
		Links: map[string]string{"/b": "/a"}, Notes: []string{"A write to /b changes other names\u202e too."},
	}})
	want := []string{
		"The patch names /a, from which symbolic links lead to /b.",
		`A write to /b changes other names\u{202e} too.`,
	}
	if diff := cmp.Diff(want, v.show().Notes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
