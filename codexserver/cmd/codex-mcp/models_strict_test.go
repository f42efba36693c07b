//go:build models && unix

package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// strictTemplate precedes a chat template, and refuses what those of Mistral, Devstral, Gemma, DeepSeek and
// Qwen 3.5 do: roles that do not alternate, another role than theirs, and a system message that is not the first.
const strictTemplate = `{%- set strict = namespace(last='') %}
{%- for message in messages %}
    {%- if message.role not in ['system', 'user', 'assistant', 'tool'] %}
        {{- raise_exception('the role ' + message.role + ' is unknown') }}
    {%- elif message.role == 'system' and not loop.first %}
        {{- raise_exception('System message must be at the beginning.') }}
    {%- elif message.role in ['user', 'assistant'] and message.role == strict.last %}
        {{- raise_exception('conversation roles must alternate user and assistant roles') }}
    {%- elif message.role == 'user' and strict.last == 'tool' %}
        {{- raise_exception('Unexpected role user after role tool') }}
    {%- endif %}
    {%- set strict.last = message.role %}
{%- endfor %}
`

// TestModelsStrict runs codex-mcp on the real llama-server, on both wires, with a model whose template is strict.
func TestModelsStrict(t *testing.T) {
	says := []string{"All", " done", ": the", " file", " is", " there", " ☃ naïve", "."}
	file := filepath.Join(t.TempDir(), "strict.gguf")
	writeModel(t, file, strictTemplate, script{
		{word: wordRun, says: append([]string{"<think>", "\n" + thought + "\n", "</think>", "\n\nI run", " a command", ".\n"}, toolCall("echo real > made.txt; cat made.txt")...)},
		{says: says},
	})
	server := startLlama(t, freePort(t), "-m", file, "-c", strconv.Itoa(ample))
	for _, tt := range []struct {
		name, messages, refusal string
	}{
		{"alternate", `{"role":"user","content":"a"},{"role":"user","content":"b"}`, "must alternate"},
		{"no-developer", `{"role":"system","content":"a"},{"role":"critic","content":"b"},{"role":"user","content":"c"}`, "unknown"},
		{"system-first", `{"role":"user","content":"a"},{"role":"system","content":"b"}`, "at the beginning"},
		{"none", `{"role":"system","content":"a"},{"role":"user","content":"b"}`, ""},
	} {
		answer, err := http.Post(server.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"messages":[`+tt.messages+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if ok := answer.StatusCode == http.StatusOK; err != nil || ok != (tt.refusal == "") || !strings.Contains(string(text), tt.refusal) {
			t.Errorf("%s: the template lets it pass: %s, %s, %v", tt.name, answer.Status, text, err)
		}
	}
	for _, r := range []route{{"chat", "chat", nil}, {"responses", "responses", nil}} {
		t.Run(r.name, func(t *testing.T) {
			t.Run("a plain turn", func(t *testing.T) { r.plain(t, server) })
			t.Run("an accepted command", func(t *testing.T) { r.command(t, server, "accept") })
			t.Run("a declined command", func(t *testing.T) { r.command(t, server, "decline") })
			t.Run("instructions", func(t *testing.T) { r.instructed(t, server) })
		})
	}
}

// instructed has instructions of a file, of the call and of its developer, and goes on after a command.
func (r route) instructed(t *testing.T, server *child) {
	c := begin(t, r.config(server, "approval_policy = \"never\"", ""))
	if err := os.WriteFile(filepath.Join(c.cwd, "AGENTS.md"), []byte("Write plainly."), 0o600); err != nil {
		t.Fatal(err)
	}
	c.ask("codex", wordRun, `,"developer-instructions":"Be brief."`)
	o := c.completes()
	c.ask("codex-reply", wordRun, `,"threadId":"`+o.Values.ThreadID+`"`)
	c.completes()
	c.ask("codex-reply", "again", `,"threadId":"`+o.Values.ThreadID+`"`)
	c.completes()
}
