package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestReasoningOfResponses checks what the Responses API gets of earlier reasoning. llama.cpp sends
// its reasoning with an empty encrypted_content, and refuses an item without content.
func TestReasoningOfResponses(t *testing.T) {
	empty, encrypted := "", "ENC"
	raw := []protocol.ReasoningText{{Type: "reasoning_text", Text: "raw"}}
	for _, tt := range []struct {
		name      string
		encrypted *string
		content   []protocol.ReasoningText
		want      string // the items of the input
	}{
		{"encrypted", &encrypted, raw, `{"type":"reasoning","summary":[],"encrypted_content":"ENC"}`},
		{"plain, as llama.cpp sends it", &empty, raw, `{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"raw"}],"encrypted_content":""}`},
		{"empty", &empty, nil, ``},
		{"not encrypted", nil, raw, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &answers{all: []answer{{body: sse(`{"type":"response.completed"}`)}}}
			item := protocol.ReasoningItem{Summary: []protocol.ReasoningText{}, Content: tt.content, EncryptedContent: tt.encrypted}
			req := &model.Request{Model: "m", Items: []protocol.ResponseItem{item}}
			if _, err := client(a, config.Provider{WireAPI: config.WireResponses}).Stream(t.Context(), req, func(protocol.EventMsg) {}); err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf(`"input":[%s],`, tt.want); !strings.Contains(a.bodies[0], want) {
				t.Errorf("the request is %s, want %s in it", a.bodies[0], want)
			}
		})
	}
}
