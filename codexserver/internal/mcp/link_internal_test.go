package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/google/go-cmp/cmp"
)

// TestModes opens a question with a form and one with a link. A client gets those whose mode its
// request declares; the others are answered, so that nothing waits for it. What a file keeps of a
// client declares the same for the next server.
func TestModes(t *testing.T) {
	s := &Server{Links: struct{ approval.Linker }{}}
	for _, tt := range []struct {
		can  modes
		want []string
	}{
		{modes{}, nil},
		{modes{form: true}, []string{"q1"}},
		{modes{link: true}, []string{"q2"}},
		{everyMode, []string{"q1", "q2"}},
	} {
		who := elicit.Client{Capabilities: json.RawMessage(tt.can.capabilities()), ProtocolVersion: modern.ProtocolVersion}
		if got := s.modes(who); got != tt.can {
			t.Errorf("%+v became %+v", tt.can, got)
		}
		if got := new(Server).modes(who); got != (modes{form: tt.can.form}) {
			t.Errorf("%+v became %+v without a page", tt.can, got)
		}
		var all questionnaire
		form, link := all.add(json.RawMessage(`{}`), false), all.add(json.RawMessage(`{}`), true)
		if diff := cmp.Diff(tt.want, slices.Sorted(maps.Keys(all.requests(tt.can)))); diff != "" {
			t.Errorf("%+v is asked (-want +got):\n%s", tt.can, diff)
		}
		if refused := all.refuse(tt.can); refused != (len(tt.want) < 2) {
			t.Errorf("%+v refuses: %t", tt.can, refused)
		}
		for one, kept := range map[*question]bool{form: tt.can.form, link: tt.can.link} {
			select {
			case <-one.answered:
				kept = !kept
			default:
			}
			if !kept || one.answer != nil {
				t.Errorf("%+v: the question %s", tt.can, one.key)
			}
		}
		if len(all.open) != len(tt.want) {
			t.Errorf("%+v leaves %d questions open", tt.can, len(all.open))
		}
	}
}
