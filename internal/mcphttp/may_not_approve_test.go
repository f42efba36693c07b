package mcphttp_test

import (
	"maps"
	"strings"
	"testing"
)

// TestMayNotApprove checks that questions of a client that may not approve are denied at once.
func TestMayNotApprove(t *testing.T) {
	s := open(t, asking, nil, withScopes)
	body, h := modern("1", "tools/call", `{"elicitation":{}}`, call)
	ann := headers{"Authorization": "Bearer ann codex:run codex:read"}
	maps.Copy(h, ann)
	if got := s.post(body, h); !strings.Contains(got.body, "decided denied") {
		t.Errorf("2026-07-28: %s", got.body)
	}
	if got := s.post(codex("1", "hello", ""), s.initialize(ann)); !strings.Contains(got.body, "decided denied") {
		t.Errorf("with a handshake: %s", got.body)
	}
}
