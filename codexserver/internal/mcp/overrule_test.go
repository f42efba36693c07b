package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestOverrule has an engine ask during a turn whether a denial is overruled. A client with a handshake is asked, and the
// question is withdrawn with its turn. One that is asked in results is not: its call would wait for the answer.
func TestOverrule(t *testing.T) {
	for _, tt := range []struct {
		name   string
		era    servertest.Era
		client time.Duration // after which it accepts
		page   time.Duration // 0 for no page
		want   string
		asked  int
	}{
		{"a client", servertest.Handshake, time.Second, 0, "approved", 1},
		{"a client that answers by itself", servertest.Handshake, 5 * time.Millisecond, 0, "denied", 1},
		{"a client without an answer", servertest.Handshake, time.Hour, 0, "denied", 1},
		{"rounds", servertest.Rounds, time.Second, 0, "denied", 0},
		{"a task", servertest.Polls, time.Second, 0, "denied", 0},
		{"rounds, beside a page", servertest.Rounds, 5 * time.Millisecond, time.Second, "approved", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := engine.TurnFunc(func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
					ctx, stop := context.WithTimeout(ctx, 10*time.Second) // the end of its turn
					defer stop()
					said := string(host.Ask(ctx, approval.Overrule{Refused: protocol.Refused{Command: []string{"rm"}, Reason: "denied"}}).Decision)
					host.Emit(protocol.AgentMessage{Message: said})
					return nil
				})
				o := &codexserver.Options{Home: testenv.Home(t), Asking: setting.Asking{Where: setting.WhereBoth}}
				o.Changes.Read = new(false)
				if tt.page > 0 {
					o.Desk = &servertest.Desk{Called: approval.ByPage, Answer: servertest.After(tt.page, servertest.Accept)}
				}
				asked := 0
				answer := func(ctx context.Context) (string, error) {
					asked++
					return servertest.After(tt.client, servertest.Accept)(ctx)
				}
				got := servertest.Join(t, codexserver.New(e, o), servertest.Host{Era: tt.era, Answer: answer}).Use(t.Context(), "codex", promptOf("go"))
				var result struct {
					Structured protocol.TurnResult `json:"structuredContent"`
				}
				must.Check(t, json.Unmarshal([]byte(got), &result))
				if r := result.Structured; r.Status != protocol.StatusCompleted || !strings.HasPrefix(r.Content, tt.want) || len(r.Refused) > 0 || asked != tt.asked {
					t.Errorf("asked %d times: %s", asked, got)
				}
			})
		})
	}
}
