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

// TestResources lists and reads the resources of a conversation in both eras. Another client does not
// see them.
func TestResources(t *testing.T) {
	for _, modern := range []bool{true, false} {
		s := codexserver.New(servertest.Script(), nil)
		connect := func() func(method, members string) string {
			if modern {
				c := servertest.Dial(t, s, nil)
				return func(method, members string) string {
					return c.Ask(t, method, `{`+members+`"_meta":`+servertest.Meta+`}`)
				}
			}
			c := servertest.Dial(t, s, nil)
			c.Ask(t, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
			return func(method, members string) string {
				return c.Ask(t, method, `{`+strings.TrimSuffix(members, ",")+`}`)
			}
		}
		ask, other := connect(), connect()
		id := servertest.ThreadOf(t, ask("tools/call", `"name":"codex","arguments":{"prompt":"say:hello"},`))
		uri := "codex://threads/" + id + "/transcript"
		code, cursor := "(-32602)", "params/cursor"
		if !modern {
			code = "(-32002)"
		}
		for _, tt := range []struct{ method, members, want string }{
			{"resources/list", "", uri},
			{"resources/list", `"cursor":"x",`, cursor},
			{"resources/templates/list", "", `codex://threads/{threadId}/transcript{?offset}`},
			{"resources/templates/list", `"cursor":"x",`, cursor},
			{"resources/read", `"uri":"` + uri + `",`, `hello`},
			{"resources/read", `"uri":"` + uri + `?offset=1",`, `== turn 1`},
			{"resources/read", `"uri":"` + uri + `?offset=99999",`, code},
			{"resources/read", `"uri":"codex://threads/unknown/transcript",`, code},
			{"resources/read", `"uri":"codex://threads/` + id + `/other",`, code},
			{"resources/read", `"uri":5,`, "/uri: want a string"},
			{"resources/read", "", "/uri: "},
		} {
			if got := ask(tt.method, tt.members); !strings.Contains(got, tt.want) {
				t.Errorf("modern %t: %s {%s}: %.300s, want %s", modern, tt.method, tt.members, got, tt.want)
			}
		}
		if got := other("resources/list", ""); strings.Contains(got, id) {
			t.Errorf("modern %t: another client lists %s", modern, got)
		}
		if got := other("resources/read", `"uri":"`+uri+`",`); !strings.Contains(got, code) {
			t.Errorf("modern %t: another client reads %s", modern, got)
		}
	}
}

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
