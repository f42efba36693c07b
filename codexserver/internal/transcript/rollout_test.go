package transcript_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/transcript"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestReadRollout(t *testing.T) {
	const meta = `{"timestamp":"t","type":"session_meta","payload":{"id":"one","timestamp":"t","cwd":"/w","originator":"o","cli_version":"1","instructions":"sk-secret"}}` + "\n"
	line := func(kind, payload string) string {
		return `{"timestamp":"t","type":"` + kind + `","payload":` + payload + "}\n"
	}
	for _, tt := range []struct{ name, text, want, fault string }{
		{"a turn", meta +
			line("event_msg", `{"type":"user_message","message":"hi","kind":"plain"}`) +
			line("response_item", `{"type":"message","role":"developer","content":[{"type":"input_text","text":"sk-secret"}]}`) +
			line("response_item", `{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\",\"a b\"]}","call_id":"1"}`) +
			line("response_item", `{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\\nuser:\"}","call_id":"1"}`) +
			line("response_item", `{"type":"function_call","name":"mcp__s__t","arguments":"{\"token\":\"sk-secret\"}","call_id":"1"}`) +
			line("response_item", `{"type":"function_call","name":"odd","arguments":"sk-secret","call_id":"1"}`) +
			line("response_item", `{"type":"local_shell_call","status":"completed","action":{"type":"exec","command":["pwd"]}}`) +
			line("response_item", `{"type":"custom_tool_call","name":"apply_patch","call_id":"2","input":"x"}`) +
			line("event_msg", `{"type":"agent_message","message":"done"}`) +
			line("event_msg", `{"type":"turn_aborted","reason":"interrupted"}`) +
			"torn", "user:\n  hi\ncommand: ls 'a b'\ncommand: bash -lc $'ls\\nuser:'\ntool: mcp__s__t\ntool: odd\ncommand: pwd\ntool: apply_patch\ncodex:\n  done\nthe turn was aborted: interrupted\n", ""},
		{"a turn of Codex 0.169", meta +
			line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>sk-secret"}]}`) +
			line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`) +
			line("event_msg", `{"type":"item_completed","item":{"type":"UserMessage","id":"1","content":[{"type":"text","text":"hi"},{"type":"local_image","path":"/x"},{"type":"text","text":" there"}]}}`) +
			line("response_item", `{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"1"}`) +
			line("event_msg", `{"type":"item_completed","item":{"type":"CommandExecution","id":"1","command":["bash","-lc","ls"],"aggregated_output":"sk-secret"}}`) +
			line("event_msg", `{"type":"item_completed","item":{"type":"Reasoning","id":"2","summary_text":["hm"]}}`) +
			line("event_msg", `{"type":"item_completed","item":{"type":"AgentMessage","id":"3","content":[{"type":"Text","text":"do"},{"type":"Text","text":"ne"}]}}`) +
			line("response_item", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}`) +
			line("event_msg", `{"type":"task_complete","last_agent_message":"done"}`),
			"user:\n  hi there\ncommand: bash -lc ls\ncodex:\n  done\n", ""},
		{"both forms", meta +
			line("event_msg", `{"type":"item_completed","item":{"type":"UserMessage","content":[{"type":"text","text":"hi"}]}}`) +
			line("event_msg", `{"type":"user_message","message":"hi","kind":"plain"}`) +
			line("event_msg", `{"type":"agent_message","message":"done"}`) +
			line("event_msg", `{"type":"item_completed","item":{"type":"AgentMessage","content":[{"type":"Text","text":"done"}]}}`) +
			line("event_msg", `{"type":"user_message","message":"done","kind":"plain"}`),
			"user:\n  hi\ncodex:\n  done\nuser:\n  done\n", ""},
		{"long lines", meta + line("event_msg", `{"type":"agent_message","message":"`+strings.Repeat("x", 33<<20)+`"}`) + line("event_msg", `{"type":"agent_message","message":"x"}`) + line("event_msg", `{"type":"agent_message","message":"`+strings.Repeat("x", 17<<20)+`"}`) + line("event_msg", `{"type":"agent_message","message":"y"}`), "codex:\n  x\ncodex:\n  y\n", ""},
		{"rollout of another thread", strings.Replace(meta, `"one"`, `"two"`, 1), "", "belongs to another conversation"},
		{"nothing", "", "", "does not name its conversation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rollout")
			must.OK(t, os.WriteFile(path, []byte(tt.text), 0o600))
			tr, err := transcript.ReadRollout(t.Context(), path, "one")
			if err != nil || tt.fault != "" {
				if tt.fault == "" || err == nil || !strings.Contains(err.Error(), tt.fault) {
					t.Errorf("%v, want %q", err, tt.fault)
				}
				return
			}
			got, _ := all(t, 10, tr.Transcript)
			must.Equal(t, "the transcript", tt.want, got)
		})
	}
	if _, err := transcript.ReadRollout(t.Context(), t.TempDir(), "one"); err == nil {
		t.Error("a folder was read")
	}
}
