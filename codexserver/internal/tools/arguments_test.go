package tools_test

import (
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

func TestBadArgumentsNameTheArgument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := servertest.Connect(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), servertest.Say(servertest.Accept))
		for _, tt := range []struct {
			tool string
			args map[string]any
			want string
		}{
			{"codex", map[string]any{}, "codex: argument /prompt is missing"},
			{"codex", map[string]any{"prompt": 5}, "codex: argument /prompt: got number, want string"},
			{"codex", map[string]any{"prompt": "p", "cwd": []int{1}}, "codex: argument /cwd: got array, want string"},
			{"codex", map[string]any{"prompt": "p", "sandbox": "none"}, `codex: argument /sandbox: value must be one of "read-only", "workspace-write", "danger-full-access"`},
			{"codex", map[string]any{"prompt": "p", "sandbox": ""}, `codex: argument /sandbox: value must be one of "read-only", "workspace-write", "danger-full-access"`},
			{"codex", map[string]any{"prompt": "p", "approval-policy": ""}, `codex: argument /approval-policy: value must be one of "untrusted", "on-failure", "on-request", "never"`},
			{"codex-reply", map[string]any{"prompt": "p"}, "codex-reply: argument /threadId is missing"},
			{"codex-reply", map[string]any{"prompt": "p", "threadId": "a", "sessionId": "b"}, "codex-reply: arguments /threadId, /conversationId and /sessionId name different conversations"},
			{"codex-reply", map[string]any{"threadId": "a"}, "codex-reply: argument /prompt is missing"},
			{"codex-reply", map[string]any{"threadId": "a", "prompt": "p"}, `codex-reply: no conversation "a" in this session`},
			{"nope", map[string]any{}, `unknown tool "nope"`},
		} {
			got, err := c.Tool(t.Context(), tt.tool, tt.args)
			if err != nil {
				t.Errorf("%s %v: %v", tt.tool, tt.args, err)
				continue
			}
			if !got.IsError || len(got.Texts) != 1 || got.Texts[0] != tt.want {
				t.Errorf("%s %v: got %+v, want %q", tt.tool, tt.args, got, tt.want)
			}
		}
	})
}
