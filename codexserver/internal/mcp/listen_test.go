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
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			all := c.Received("notifications/tasks")
			got := all[seen:]
			seen = len(all)
			if len(got) != len(want) {
				t.Errorf("%s: %s, want %q", when, got, want)
				return
			}
			for i, part := range want {
				if !strings.Contains(string(got[i]), part) || !strings.Contains(string(got[i]), made.TaskID) {
					t.Errorf("%s: %s, want %s", when, got[i], part)
				}
			}
		}
		expect("at once", `"status":"working"`)
		<-time.After(9*time.Minute + 50*time.Second)
		if n := len(c.Received("notifications/tasks")) - seen; n > 590 {
			t.Errorf("%d notifications in 590 seconds", n)
		}
		seen = len(c.Received("notifications/tasks"))
		<-time.After(11500 * time.Millisecond)
		synctest.Wait()
		said := false
		for _, one := range c.Received("notifications/tasks")[seen:] {
			said = said || strings.Contains(string(one), "hello")
		}
		if !said {
			t.Error("the words of the turn are not told")
		}
		seen = len(c.Received("notifications/tasks"))
		<-time.After(11 * time.Minute)
		synctest.Wait()
		all := c.Received("notifications/tasks")
		if last := string(all[len(all)-1]); !strings.Contains(last, `"status":"completed"`) || !strings.Contains(last, "hello") {
			t.Errorf("at the end: %s", last)
		}
		seen = len(all)
		<-time.After(time.Hour)
		expect("after the end")
		cancel()
		synctest.Wait()
	})
}
