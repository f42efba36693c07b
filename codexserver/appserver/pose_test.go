package appserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// ofServer returns the params of mcpServer/elicitation/request with which Codex passes on those
// of elicitation/create.
func ofServer(t *testing.T, params string) string {
	t.Helper()
	p := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(params), &p); err != nil {
		t.Fatal(err)
	}
	p["threadId"], p["turnId"], p["serverName"] = json.RawMessage(`"`+threadID+`"`), json.RawMessage(`"`+turnID+`"`), json.RawMessage(`"evil"`)
	if p["mode"] == nil {
		p["mode"] = json.RawMessage(`"form"`)
	}
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestPosingServers has questions of an MCP server, and of the model, that try to look like
// approvals, and a client whose policy approves the command ls. It approves none of them, and each
// says who asks.
func TestPosingServers(t *testing.T) {
	for era, version := range map[string]string{"2026-07-28": "", "a handshake": mcptypes.ProtocolVersion} {
		for name, pose := range servertest.Poses() {
			for _, who := range []string{"server", "model"} {
				t.Run(era+"/"+name+"/"+who, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						method, mark, params := askElicit, `"evil"`, ofServer(t, pose)
						if who == "model" {
							var p struct {
								Message json.RawMessage `json:"message"`
							}
							if err := json.Unmarshal([]byte(pose), &p); err != nil {
								t.Fatal(err)
							}
							method, mark = askInput, "the model"
							params = strings.NewReplacer(`"Which one?"`, string(p.Message), `"Pick"`, string(p.Message), `"first"`, string(p.Message)).Replace(inputParams)
						}
						f := newFake(t)
						var answer string
						f.turn = func(r *run) {
							var raw json.RawMessage
							if err := r.peer.Call(r.ctx, method, json.RawMessage(params), &raw); err != nil {
								t.Error(err)
							}
							answer = string(raw)
							answered(r)
						}
						asked := 0
						c, err := client.Start(t.Context(), &client.Options{
							Server: codexserver.New(f.engine(appserver.Options{}), &codexserver.Options{Changes: codexserver.ChangeOptions{Off: true}}), Protocol: version,
							AskRaw: func(_ context.Context, q *client.Question) (json.RawMessage, error) {
								asked++
								if q.Kind == "exec" && slices.Equal(q.Command, []string{"ls"}) {
									t.Errorf("the policy approves it: %.200s", q.Params)
								}
								servertest.CheckPose(t, mark, q.Params)
								return json.RawMessage(`{"action":"accept","content":{"q1":"A"}}`), nil
							},
						})
						if err != nil {
							t.Fatal(err)
						}
						if r, err := c.Run(t.Context(), client.Task{Prompt: "go"}); err != nil || r.Status != protocol.StatusCompleted {
							t.Errorf("%+v, %v", r, err)
						}
						if err := c.Close(); err != nil {
							t.Error(err)
						}
						if is := asked == 1; is != strings.Contains(answer, `"accept"`) && is != strings.Contains(answer, `"A"`) || !is && name != "a URL" {
							t.Errorf("asked %d times, answered %s", asked, answer)
						}
					})
				})
			}
		}
	}
}

// TestManyQuestions has a server, or the model, that asks 1024 questions at once. They are asked
// one after the other, and too many are declined.
func TestManyQuestions(t *testing.T) {
	for name, tt := range map[string]struct{ method, params, yes string }{
		"questions": {askElicit, formParams, `"accept"`}, "approvals": {askElicit, toolParams, `"accept"`}, "of the model": {askInput, inputParams, `"A"`},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			open, most, asked, yes := 0, 0, 0, 0
			ask := func() {
				mu.Lock()
				open, asked = open+1, asked+1
				most = max(most, open)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				open--
			}
			h := &recorder{
				approve: func(context.Context, *elicit.Question) elicit.Outcome {
					ask()
					return elicit.Outcome{Decision: elicit.Approved}
				},
				elicit: func(context.Context, json.RawMessage) (json.RawMessage, error) {
					ask()
					return json.RawMessage(`{"action":"accept","content":{"q1":"A"}}`), nil
				},
			}
			if err := turn(t, h, func(r *run) {
				var all sync.WaitGroup
				for i := range 1024 {
					all.Go(func() {
						params := strings.Replace(tt.params, `"itemId":"q"`, fmt.Sprintf(`"itemId":"q%d"`, i), 1)
						if answer := r.ask(tt.method, "%s", params); strings.Contains(answer, tt.yes) {
							mu.Lock()
							defer mu.Unlock()
							yes++
						}
					})
				}
				all.Wait()
			}); err != nil {
				t.Fatal(err)
			}
			if most != 1 || yes != asked || asked > 40 || asked < 30 {
				t.Errorf("%d at once, %d asked, %d answered", most, asked, yes)
			}
			if n := h.count("background_event"); n > 0 {
				t.Errorf("%d events say so", n)
			}
		})
	}
}
