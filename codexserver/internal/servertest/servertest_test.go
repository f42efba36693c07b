package servertest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestScript plays each word of a script, with answers of the client and of the desk.
func TestScript(t *testing.T) {
	for _, tt := range []struct {
		prompt string
		client servertest.Answer
		want   string
		failed bool
		after  time.Duration
	}{
		{"say:a wait:1m say:b", nil, "a, b", false, time.Minute},
		{"a+b", servertest.Say(servertest.Decline), "a: denied, b: denied", false, 0},
		{"a", servertest.After(time.Minute, servertest.Accept), "a: approved", false, time.Minute},
		{"a", servertest.Fail, "a: approved", false, time.Hour}, // by the desk
		{"a", servertest.Never, "a: approved", false, time.Hour},
		{"fail:x", nil, "x", true, 0},
	} {
		t.Run(tt.prompt, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, d := &servertest.Engine{}, &servertest.Desk{Answer: servertest.After(time.Hour, servertest.Accept)}
				options := &codexserver.Options{Desk: d}
				options.Approvals.Timeout = -1
				c := servertest.Connect(t, codexserver.New(e, options), tt.client)
				begin := time.Now()
				got, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": tt.prompt})
				if err != nil || !strings.HasPrefix(got.Content, tt.want) || got.IsError != tt.failed || time.Since(begin) != tt.after {
					t.Errorf("%+v after %v, %v", got, time.Since(begin), err)
				}
				if len(e.Started()) != 1 || e.Started()[0].ID != got.Thread || len(e.Turns()) != 1 {
					t.Errorf("started %+v, turns %+v", e.Started(), e.Turns())
				}
				synctest.Wait()
				if events := c.Events(); events[0] != "session_configured" || len(d.Seen()) == 0 {
					t.Errorf("events %q, the desk saw %q", events, d.Seen())
				}
			})
		})
	}
}
