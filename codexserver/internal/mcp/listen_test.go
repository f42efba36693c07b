package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestListen subscribes to a task: the client learns its state, each change of its status, its words
// once a second, and nothing about a task that it does not know.
func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &codexserver.Options{Home: t.TempDir()}
		o.Changes.Off = true
		c := servertest.Dial(t, codexserver.New(servertest.Script(), o), nil)
		meta := servertest.Capable(`"extensions":{"io.modelcontextprotocol/tasks":{}}`)
		var made struct{ TaskID string }
		if err := json.Unmarshal([]byte(c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"wait:10m say:hello wait:10m"},"_meta":`+meta+`}`)), &made); err != nil || made.TaskID == "" {
			t.Fatalf("%+v, %v", made, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.Start(ctx, "subscriptions/listen", json.RawMessage(fmt.Sprintf(`{"notifications":{"taskIds":[%q,"unknown",%[1]q]},"_meta":%s}`, made.TaskID, meta)))
		synctest.Wait()
		if got := c.Received("notifications/subscriptions/acknowledged"); len(got) != 1 || strings.Count(string(got[0]), made.TaskID) != 1 || strings.Contains(string(got[0]), "unknown") {
			t.Errorf("acknowledged: %s", got)
		}
		seen := 0
		// told returns what was told within a time.
		told := func(within time.Duration) []json.RawMessage {
			<-time.After(within)
			synctest.Wait()
			all := c.Received("notifications/tasks")
			news := all[seen:]
			seen = len(all)
			return news
		}
		if got := told(0); len(got) != 1 || !strings.Contains(string(got[0]), `"status":"working"`) || !strings.Contains(string(got[0]), made.TaskID) {
			t.Errorf("at once: %s", got)
		}
		if got := told(9*time.Minute + 50*time.Second); len(got) > 590 {
			t.Errorf("%d notifications in 590 seconds", len(got))
		}
		if got := told(11500 * time.Millisecond); !strings.Contains(fmt.Sprintf("%s", got), "hello") {
			t.Error("the words of the turn are not told")
		}
		got := told(11 * time.Minute)
		if last := string(got[len(got)-1]); !strings.Contains(last, `"status":"completed"`) || !strings.Contains(last, "hello") {
			t.Errorf("at the end: %s", last)
		}
		if got := told(time.Hour); len(got) > 0 {
			t.Errorf("after the end: %s", got)
		}
		cancel()
		synctest.Wait()
	})
}
