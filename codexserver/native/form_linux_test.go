package native_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// TestForms plays the table of forms with each wire, with a provider that streams and one that refuses to.
func TestForms(t *testing.T) {
	for i, wire := range []string{"responses", "chat"} {
		for j, streams := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s streams %t", wire, streams), func(t *testing.T) {
				e := servertest.FormEngine{Counts: true, Open: func(t *testing.T, home, folder string, calls setting.Calls) servertest.Server {
					o := native.Options{CodexHome: home, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir()}}
					o.Overrides = map[string]any{"model_providers.mock.wire_api": wire}
					return codexserver.New(open(t, o), &codexserver.Options{Home: home, Folder: folder, Calls: calls})
				}}
				e.Model = func(t testing.TB, next func([]byte) servertest.Step) string {
					p := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
						if streams {
							return formTurn(next(r.Body))
						}
						if strings.Contains(string(r.Body), `"stream":true`) {
							return providertest.Turn{Status: 400, Body: `{"error":{"message":"not allowed to stream","param":"stream"}}`}
						}
						return unstreamed(wire, formTurn(next(r.Body)))
					}})
					t.Cleanup(p.Close)
					return p.BaseURL()
				}
				e.TestForms(t, func(n int) bool { return *whole || i == 0 && j == 0 || n%3 == i+j })
			})
		}
	}
}

// formTurn returns the answer of a step.
func formTurn(step servertest.Step) providertest.Turn {
	switch {
	case step.Fail:
		return providertest.Turn{Status: 400, Body: `{"error":{"message":"no such luck"}}`}
	case step.ID == "":
		return providertest.Say(cmp.Or(step.Say, "done"))
	}
	return providertest.Call(providertest.Shell(step.ID, "bash", "-c", step.Line))
}

// unstreamed returns an answer as a body that is no stream.
func unstreamed(wire string, t providertest.Turn) providertest.Turn {
	if t.Status != 0 {
		return t
	}
	said := strings.Join(t.Text, "")
	var items, calls []any
	if said != "" {
		items = append(items, map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": said}}})
	}
	for _, c := range t.ToolCalls {
		items = append(items, map[string]any{"type": "function_call", "call_id": c.ID, "name": c.Name, "arguments": c.Arguments})
		calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Arguments}})
	}
	body := any(map[string]any{"id": "r", "object": "response", "status": "completed", "output": items, "usage": map[string]any{"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}})
	if wire == "chat" {
		message := map[string]any{"role": "assistant", "content": said}
		if calls != nil {
			message["tool_calls"] = calls
		}
		body = map[string]any{"object": "chat.completion", "choices": []any{map[string]any{"message": message, "finish_reason": "stop"}}, "usage": map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}
	}
	text, _ := json.Marshal(body) // texts can be written
	return providertest.Turn{Body: string(text)}
}
