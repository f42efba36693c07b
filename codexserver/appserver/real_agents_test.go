//go:build realcodex

package appserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// items is a model's response of the Responses wire, item by item, unchanged.
func items(list ...string) providertest.Turn {
	var b strings.Builder
	event := func(name, data string) { fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data) }
	event("response.created", `{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}`)
	for i, item := range list {
		event("response.output_item.done", fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item))
	}
	event("response.completed", `{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","output":[],"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":2}}}`)
	return providertest.Turn{Body: b.String()}
}

// mcpCall calls the tool of the MCP server demo by its namespace in that version.
var mcpCall = providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
	var body struct {
		Tools []struct{ Type, Name string } `json:"tools"`
	}
	_ = json.Unmarshal(r.Body, &body)
	for _, t := range body.Tools {
		switch {
		case t.Type == "namespace" && strings.Contains(t.Name, "demo"):
			return items(fmt.Sprintf(`{"type":"function_call","id":"fc_1","call_id":"m1","name":"write_thing","arguments":"{}","namespace":%q}`, t.Name))
		case strings.Contains(t.Name, "write_thing"):
			return providertest.Call(providertest.Tool("m1", t.Name, map[string]any{}))
		}
	}
	return providertest.Say("no such tool")
}}

// demo is the configuration of the MCP server demo.
func demo(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("[mcp_servers.demo]\ncommand = %q\nenv = { %s = \"1\" }\n", self, asMCPServer)
}

// spawned is the script of a model whose sub-agent runs a command. Both use the same
// provider; only the model sees the prompt.
func spawned() providertest.Turn {
	const js = `const r = await tools.exec_command({cmd:\"touch made.txt && echo made\",sandbox_permissions:\"require_escalated\",justification:\"to write\"}); text(r);`
	return providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		outputs := len(r.ToolOutputs())
		switch root := strings.Contains(string(r.Body), "ROOT PROMPT"); {
		case root && outputs == 0:
			return items(`{"type":"function_call","id":"fc_1","call_id":"s1","namespace":"collaboration","name":"spawn_agent","arguments":"{\"task_name\":\"worker\",\"message\":\"do it\",\"fork_turns\":\"none\"}"}`)
		case root && outputs == 1:
			return items(`{"type":"function_call","id":"fc_2","call_id":"s2","namespace":"collaboration","name":"wait_agent","arguments":"{\"timeout_ms\":10000}"}`)
		case root:
			return providertest.Say("all done")
		case outputs == 0:
			return items(`{"type":"custom_tool_call","id":"ct_1","call_id":"w1","name":"exec","namespace":"functions","input":"` + js + `"}`)
		}
		return providertest.Say("worker done")
	}}
}

// spawnedByTool is the same script for the tools of other models, which earlier versions also have.
func spawnedByTool() providertest.Turn {
	call := func(r providertest.Request, id, name string, args map[string]any) providertest.Turn {
		text, _ := json.Marshal(args)
		namespace := ""
		if strings.Contains(string(r.Body), `"multi_agent_v1"`) {
			namespace = `,"namespace":"multi_agent_v1"`
		}
		return items(fmt.Sprintf(`{"type":"function_call","id":"fc_%s","call_id":%q%s,"name":%q,"arguments":%q}`, id, id, namespace, name, text))
	}
	return providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		outputs := len(r.ToolOutputs())
		switch root := strings.Contains(string(r.Body), "ROOT PROMPT"); {
		case root && outputs == 0:
			return call(r, "s1", "spawn_agent", map[string]any{"message": "do it"})
		case root && outputs == 1:
			var agent struct {
				ID string `json:"agent_id"`
			}
			_ = json.Unmarshal([]byte(r.LastToolOutput()), &agent)
			name := "wait"
			if strings.Contains(string(r.Body), `"wait_agent"`) {
				name = "wait_agent"
			}
			return call(r, "s2", name, map[string]any{"ids": []string{agent.ID}, "targets": []string{agent.ID}, "timeout_ms": 10000})
		case root:
			return providertest.Say("all done")
		case outputs == 0:
			return escalated("w1")
		}
		return providertest.Say("worker done")
	}}
}
