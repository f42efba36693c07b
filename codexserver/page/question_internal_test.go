package page

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
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

// TestFactsOfQuestion shows what an engine adds to its question, and not the thread that the
// page shows anyway.
func TestFactsOfQuestion(t *testing.T) {
	for want, meta := range map[string]map[string]any{
		"":                   {thread.MetaFacts: map[string]any{"threadId": "t"}},
		"{\n  \"own\": 1\n}": {"own": 1},
	} {
		v := viewQuestion(&approval.Request{Question: &elicit.Question{Meta: meta}, Event: protocol.RawEvent{}})
		if v.Facts != want {
			t.Errorf("%v: %q, want %q", meta, v.Facts, want)
		}
	}
}
