package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
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
	for _, tt := range []struct{ name, text, why, want string }{
		{"cut off", "half an", "it reached a limit", "half an\n\nThe answer is incomplete: it reached a limit."},
		{"without a text", "", "it reached a limit", "The answer is incomplete: it reached a limit."},
		{"empty", "", protocol.EmptyAnswer, "The answer is incomplete: it is empty."}, // only in the structured content
	} {
		t.Run(tt.name, func(t *testing.T) {
			say := engine.TurnFunc(func(_ context.Context, h engine.Host, _ []protocol.InputItem) error {
				if tt.text != "" {
					h.Emit(protocol.AgentMessage{Message: tt.text})
				}
				return nil
			})
			c := servertest.Dial(t, codexserver.New(lacking{say, tt.why}, nil), nil)
			var got struct {
				IsError bool
				Content []struct {
					Text        string
					Annotations any
				}
				StructuredContent struct{ Status, Content string }
			}
			if err := json.Unmarshal([]byte(c.CallTool(t, "codex", `{"prompt":"p"}`)), &got); err != nil {
				t.Fatal(err)
			}
			want := tt.want + ` codex-reply continues, for example with "continue".`
			if s := got.StructuredContent; s.Content != want || s.Status != "incomplete" || got.IsError {
				t.Errorf("the result is %+v", got)
			}
			var text strings.Builder
			text.WriteString(got.Content[0].Text)
			for _, block := range got.Content[1:] {
				if block.Annotations == nil { // else it is for the model
					text.WriteString("\n" + block.Text)
				}
			}
			if tt.why != protocol.EmptyAnswer && text.String() != want || tt.why == protocol.EmptyAnswer && text.String() != "" {
				t.Errorf("the text is %q", text.String())
			}
			c.CallTool(t, "codex", `{"prompt":"p","background":true}`)
			if waited := c.CallTool(t, "codex-wait", `{}`); !strings.Contains(waited, `"status":"incomplete"`) {
				t.Errorf("codex-wait: %s", waited)
			}
		})
	}
}

// TestBrokenOffAnswer stops a turn while the model writes, or lets it fail: the result has the
// text so far.
func TestBrokenOffAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := engine.TurnFunc(func(ctx context.Context, h engine.Host, in []protocol.InputItem) error {
			h.Emit(protocol.AgentMessageDelta{Delta: "lost"})
			h.Emit(protocol.StreamError{Message: "again"})
			h.Emit(protocol.AgentMessageDelta{Delta: "half "})
			h.Emit(protocol.AgentMessageDelta{Delta: "an answer"})
			if protocol.TextOf(in) == "fail" {
				return errors.New("no network")
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		c := servertest.Dial(t, codexserver.New(writes, nil), nil)
		const half = "\n\nThe answer until then:\n\nhalf an answer"
		if got, want := c.CallTool(t, "codex", `{"prompt":"fail"}`), quoted("no network"+half); !strings.Contains(got, want) {
			t.Errorf("a turn that failed: %s", got)
		}
		id := servertest.ThreadOf(t, c.CallTool(t, "codex", `{"prompt":"p","background":true}`))
		synctest.Wait()
		c.CallTool(t, "codex-interrupt", `{"threadId":"`+id+`"}`)
		if got := c.CallTool(t, "codex-wait", `{}`); !strings.Contains(got, quoted(half)) {
			t.Errorf("a turn that was interrupted: %s", got)
		}
		if got := c.CallTool(t, "codex", `{"prompt":"p","budget":{"minutes":1}}`); !strings.Contains(got, quoted("The last message:\n\nhalf an answer")) {
			t.Errorf("a turn that a budget stopped: %s", got)
		}
	})
}

// TestReroutedAnswer has another model answer: the result says which, and why.
func TestReroutedAnswer(t *testing.T) {
	moves := engine.TurnFunc(func(_ context.Context, h engine.Host, _ []protocol.InputItem) error {
		h.Emit(protocol.ModelReroute{FromModel: "k", ToProvider: "b", ToModel: "m", Reason: "its limit"})
		h.Emit(protocol.TaskComplete{LastAgentMessage: new("done")})
		return nil
	})
	c := servertest.Dial(t, codexserver.New(moves, nil), nil)
	got := c.CallTool(t, "codex", `{"prompt":"p"}`)
	for _, want := range []string{`"text":"\nm of b answers from now on, in place of k: its limit."`, `"rerouted":[{"fromModel":"k","toProvider":"b","toModel":"m","reason":"its limit"}]`, `"model":"m"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the result lacks %s: %s", want, got)
		}
	}
}

// quoted returns words as they are within JSON.
func quoted(words string) string {
	return strings.ReplaceAll(words, "\n", `\n`)
}
