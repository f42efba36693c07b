package mcptool_test

import (
	"context"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// lacking is an engine whose answers are incomplete because of its text.
type lacking struct {
	engine.Engine
	why string
}

func (e lacking) Start(ctx context.Context, cfg protocol.Config, h engine.Host) (engine.Conversation, error) {
	return e.Engine.Start(ctx, cfg, lackingHost{h, e.why})
}

type lackingHost struct {
	engine.Host
	why string
}

func (h lackingHost) Emit(m protocol.EventMsg) {
	if end, ok := m.(protocol.TaskComplete); ok {
		end.Incomplete = h.why
		m = end
	}
	h.Host.Emit(m)
}

// TestIncompleteAnswer checks that a caller gets the text so far, and learns why it is not whole
// and what to do.
func TestIncompleteAnswer(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"cut off", "half an", "half an\n\n"},
		{"empty", "", "\n\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			say := engine.TurnFunc(func(_ context.Context, h engine.Host, _ []protocol.InputItem) error {
				if tt.text != "" {
					h.Emit(protocol.AgentMessage{Message: tt.text})
				}
				return nil
			})
			c := servertest.Dial(t, codexserver.New(lacking{say, "it reached a limit"}, nil), nil)
			got, _ := endOf(t, c.CallTool(t, "codex", `{"prompt":"p"}`))
			want := turnEnd{Status: "incomplete", Content: tt.want + `The answer is incomplete: it reached a limit. codex-reply continues, for example with "continue".`}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			c.CallTool(t, "codex", `{"prompt":"p","background":true}`)
			if waited := c.CallTool(t, "codex-wait", `{}`); !strings.Contains(waited, `"status":"incomplete"`) {
				t.Errorf("codex-wait: %s", waited)
			}
		})
	}
}
