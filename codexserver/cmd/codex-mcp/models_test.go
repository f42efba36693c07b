//go:build models && unix

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const (
	wordRun  = "word-run"  // makes the model think and call a command that makes made.txt
	wordText = "word-text" // makes it write the call in another form, which the server leaves in the text
	wordLong = "word-long" // makes it answer without an end
	thought  = "The file is not there."
	usual    = "All done: the file is there ☃ naïve." // its answer to everything else
)

// ample is the number of tokens of a context that no test fills.
const ample = 32768

// route is how codex-mcp reaches a model server.
type route struct {
	name, wire string
	gateway    *child // between them, or nil
}

// config is a configuration for a server, with more keys of the provider.
func (r route) config(server *child, policy, keys string) string {
	url := server.url
	if r.gateway != nil {
		url = r.gateway.url
		keys += fmt.Sprintf("http_headers = { x-portkey-provider = \"openai\", x-portkey-custom-host = %q }\n", server.url+"/v1")
	}
	return fmt.Sprintf("model = \"script\"\nmodel_provider = \"local\"\nsandbox_mode = \"danger-full-access\"\n%s\n[model_providers.local]\nbase_url = %q\nwire_api = %q\n%s",
		policy, url+"/v1", r.wire, keys)
}

// TestModels runs codex-mcp on the real llama-server, on both wires, directly and through
// Portkey's gateway. The model is one of our own, see writeModel. Its template is strict.
func TestModels(t *testing.T) {
	says := []string{"All", " done", ": the", " file", " is", " there", " ☃ naïve", "."}
	run := append([]string{"<think>", "\n" + thought + "\n", "</think>", "\n\nI run", " a command", ".\n"}, toolCall("echo real > made.txt; cat made.txt")...)
	answers := script{
		{word: wordRun, says: run},
		{word: wordText, says: []string{"<function=shell>", `{"command": ["ls"]}`, "</function>"}},
		{word: "tool_call_in_text", says: run}, // it was told how to call
		{word: wordLong, says: []string{" tick", " tock"}, again: true},
		{says: says},
	}
	models := t.TempDir()
	file, short := filepath.Join(models, "script.gguf"), filepath.Join(models, "short.gguf")
	// It precedes the chat template, and refuses what those of Mistral, Devstral, Gemma, DeepSeek and Qwen 3.5 do: roles that do
	// not alternate, another role than theirs, and a system message that is not the first. It also refuses the calls that
	// other servers do: with arguments that are no object, a name or an id that does not fit, or no output.
	strict := must.Get(os.ReadFile("testdata/models/strict.jinja"))(t)
	writeModel(t, file, string(strict), answers)
	writeModel(t, short, "", script{{word: wordLong, says: says}, {says: says}})
	gateway := startGateway(t)
	for _, r := range []route{
		{"chat", "chat", nil}, {"responses", "responses", nil},
		{"chat through a gateway", "chat", gateway}, {"responses through a gateway", "responses", gateway},
	} {
		t.Run(r.name, func(t *testing.T) {
			server := startLlama(t, freePort(t), "-m", file, "-c", strconv.Itoa(ample))
			t.Run("an accepted command", func(t *testing.T) { r.command(t, server, "accept") })
			t.Run("a declined command", func(t *testing.T) { r.command(t, server, "decline") })
			t.Run("instructions", func(t *testing.T) { r.instructed(t, server) })
			t.Run("a check", func(t *testing.T) { r.checked(t, server) })
			if r.gateway == nil {
				// The gateway reads on when its client has gone.
				t.Run("a cancelled call", func(t *testing.T) { r.cancelled(t, server) })
				t.Run("a broken call", func(t *testing.T) { r.broken(t, server, file) })
				t.Run("a history", func(t *testing.T) { r.continued(t, server) })
			}
			t.Run("a full context", func(t *testing.T) { r.full(t, file) })
			t.Run("an answer cut off", func(t *testing.T) { r.cut(t, file) })
			t.Run("a restarted server", func(t *testing.T) { r.restarted(t, file, short) })
			t.Run("a missing model", func(t *testing.T) { r.missing(t, models) })
		})
	}
}

// talk is a client of codex-mcp.
type talk struct{ *process }

// begin starts codex-mcp for a client.
func begin(t *testing.T, config string) talk {
	t.Helper()
	f := newFolders(t)
	writeConfig(t, f.home, config)
	c := talk{start(t, f, "--engine", "native")}
	c.hello(`{"elicitation":{}}`)
	return c
}

// outcome is the result of a call.
type outcome struct {
	IsError bool
	Content []struct{ Text string }
	Values  struct {
		ThreadID, Status, Content string
		Refused                   []any
		Check                     protocol.Check
		Usage                     struct{ Turn, Thread struct{ Input, Output int } }
	} `json:"structuredContent"`
}

func (o outcome) text() string {
	var b strings.Builder
	for _, c := range o.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

// ask sends a prompt, to a conversation if there is one.
func (c talk) ask(prompt, thread string) {
	c.t.Helper()
	tool, arguments := "codex", map[string]any{"prompt": prompt}
	if thread != "" {
		tool, arguments["threadId"] = "codex-reply", thread
	}
	c.call(tool, arguments)
}

// outcome waits for the result of the last call.
func (c talk) outcome() (o outcome) {
	c.t.Helper()
	b, err := json.Marshal(c.answer()["result"])
	if err == nil {
		err = json.Unmarshal(b, &o)
	}
	must.OK(c.t, err)
	return o
}

// completes checks that a call ended well, with the usual answer.
func (c talk) completes() outcome {
	c.t.Helper()
	o := c.outcome()
	if o.IsError || o.Values.Status != "completed" || len(o.Content) == 0 || o.Content[0].Text != usual {
		c.t.Errorf("the result is %+v, want %q", o, usual)
	}
	return o
}

// fails checks that a call failed, and that its text has the parts.
func (c talk) fails(parts ...string) {
	c.t.Helper()
	o := c.outcome()
	for _, part := range parts {
		if !o.IsError || !strings.Contains(o.text(), part) {
			c.t.Errorf("the result is %+v, want an error with %q", o, part)
		}
	}
}

// eventsOf returns the events of a type that the turns so far had.
func (c talk) eventsOf(kind string) (all []map[string]any) {
	for _, m := range c.messages() {
		params, _ := m["params"].(map[string]any)
		if msg, _ := params["msg"].(map[string]any); msg["type"] == kind {
			all = append(all, msg)
		}
	}
	return all
}

// events returns how many events of a type contain the text.
func (c talk) events(kind, text string) (n int) {
	for _, msg := range c.eventsOf(kind) {
		if words, _ := cmp.Or(msg["message"], msg["text"]).(string); strings.Contains(words, text) {
			n++
		}
	}
	return n
}

func (r route) command(t *testing.T, server *child, action string) {
	c := begin(t, r.config(server, "approval_policy = \"untrusted\"\nshow_raw_agent_reasoning = true", ""))
	c.ask(wordRun, "")
	question := c.expect(map[string]any{"method": "elicitation/create"})
	made := filepath.Join(c.cmd.Dir, "made.txt")
	if _, err := os.Stat(made); err == nil {
		t.Error("the command ran before the answer")
	}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"action":%q,"content":{}}}`, question["id"], action))
	o := c.completes()
	if c.events("agent_reasoning_raw_content", thought) == 0 {
		t.Error("no event has the model's reasoning")
	}
	text, err := os.ReadFile(made)
	if accepted := action == "accept"; accepted != (string(text) == "real\n") || accepted != (err == nil) || accepted != (len(o.Values.Refused) == 0) {
		t.Errorf("the file has %q, %v; refused %v", text, err, o.Values.Refused)
	}
}

// cancelled checks that a cancelled call frees the only slot of the server.
func (r route) cancelled(t *testing.T, server *child) {
	c := begin(t, r.config(server, "", ""))
	c.ask(wordLong, "")
	server.awaitAnswer()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, c.calls))
	last := 0
	server.await("a free slot", func() bool {
		n, busy := server.decoded()
		last = max(last, n)
		return !busy
	})
	if last > ample/2 {
		t.Errorf("the answer had %d tokens when the slot was free: the end of the context may have freed it", last)
	}
	c.ask("hello", "")
	c.completes()
}

// full fills the context of a server.
func (r route) full(t *testing.T, file string) {
	server := startLlama(t, freePort(t), "-m", file, "-c", "6144")
	for _, tt := range []struct {
		name, policy string
		window       float64 // that the engine knows at the end
	}{{"the server refuses", "model_context_window = 8192", 8192}, {"the window is the server's", "", 6144}} {
		t.Run(tt.name, func(t *testing.T) {
			c := begin(t, r.config(server, tt.policy, ""))
			const summarised = "The conversation was summarised to make room."
			long := strings.Repeat("seven little words fill the context here. ", 100)
			c.ask(long, "")
			o := c.completes()
			for range 4 {
				c.ask(long, o.Values.ThreadID)
				c.completes()
			}
			if c.events("agent_message", summarised) == 0 {
				t.Error("the conversation was not summarised")
			}
			var window any
			for _, msg := range c.eventsOf("task_started") {
				window = msg["model_context_window"]
			}
			if window != tt.window {
				t.Errorf("the window is %v, want %v", window, tt.window)
			}
		})
	}
}

// cut cuts answers off after some tokens. The result says that it is incomplete. With the
// Responses API this server calls every answer complete, so nobody can know.
func (r route) cut(t *testing.T, file string) {
	status := map[string]string{"chat": "incomplete", "responses": "completed"}[r.wire]
	for tokens, want := range map[int]string{3: "All done: the", 1: "All"} {
		t.Run(fmt.Sprintf("%d tokens", tokens), func(t *testing.T) {
			server := startLlama(t, freePort(t), "-m", file, "-c", "8192", "--predict", strconv.Itoa(tokens))
			c := begin(t, r.config(server, "", ""))
			c.ask("hello", "")
			o := c.outcome()
			text, why, _ := strings.Cut(o.text(), "\n")
			if text != want || o.Values.Status != status || status == "incomplete" && !strings.Contains(why, "limit of output tokens") {
				t.Errorf("the result is %+v, want %q, %s, and why it is incomplete", o, want, status)
			}
		})
	}
}

// restarted kills the server in mid-answer and starts it again. Its new model answers with an end.
func (r route) restarted(t *testing.T, file, short string) {
	port := freePort(t)
	server := startLlama(t, port, "-m", file, "-c", "8192")
	c := begin(t, r.config(server, "", ""))
	c.ask(wordLong, "")
	server.awaitAnswer()
	server.kill()
	startLlama(t, port, "-m", short, "-c", "8192")
	c.completes()
	if c.events("stream_error", "") == 0 {
		t.Error("no event says that the stream broke off")
	}
}

// missing asks for a model that the server does not have. A server with one model answers for
// every name; one with a folder of models does not.
func (r route) missing(t *testing.T, models string) {
	server := startLlama(t, freePort(t), "--models-dir", models)
	config := strings.Replace(r.config(server, "", ""), `"script"`, `"no-such-model"`, 1)
	c := begin(t, config)
	c.ask("hello", "")
	c.fails("no-such-model")
}

// instructed has instructions of a file, of the call and of its developer, goes on after a command, and counts its tokens.
// checked has a model that says that all is done, and does nothing, or does it.
func (r route) checked(t *testing.T, server *child) {
	c := begin(t, r.config(server, "approval_policy = \"never\"", ""))
	for prompt, want := range map[string]string{"make the file": "incomplete false 3", wordRun: "completed true 1"} {
		must.OK(t, os.RemoveAll(filepath.Join(c.cmd.Dir, "made.txt")))
		c.call("codex", map[string]any{"prompt": prompt, "check": "cat made.txt"})
		o := c.outcome()
		if o.Values.Check.Passed == nil {
			t.Fatalf("%s: %+v", prompt, o)
		}
		must.Equal(t, prompt, want, fmt.Sprint(o.Values.Status, " ", *o.Values.Check.Passed, " ", o.Values.Check.Tries))
	}
}

func (r route) instructed(t *testing.T, server *child) {
	c := begin(t, r.config(server, "approval_policy = \"never\"", ""))
	write(t, filepath.Join(c.cmd.Dir, "AGENTS.md"), "Write plainly.")
	c.call("codex", map[string]any{"prompt": wordRun, "developer-instructions": "Be brief."})
	o := c.completes()
	c.ask(wordRun, o.Values.ThreadID)
	c.completes()
	c.ask("again", o.Values.ThreadID)
	usage := c.completes().Values.Usage
	if usage.Turn.Input == 0 || usage.Turn.Output == 0 || usage.Thread.Input <= usage.Turn.Input {
		t.Errorf("the usage is %+v", usage)
	}
}
