//go:build models && unix

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// histories are what other servers and programs leave in a conversation, as items of a file of Codex. The server refuses each
// as it is.
var histories = map[string]string{
	"half an object":           item("c", "shell", `{"command": ["bash"`) + output("c"),
	"a line":                   item("c", "shell", `echo a`) + output("c"),
	"a tag behind":             item("c", "shell", `{"command": ["ls"]}</tool_call>`) + output("c"),
	"a list":                   item("c", "shell", `["ls"]`) + output("c"),
	"a text":                   item("c", "shell", `"{}"`) + output("c"),
	"no arguments":             item("c", "shell", ``) + output("c"),
	"half a character":         item("c", "shell", `{"command": ["\ud83d"]}`) + output("c"),
	"two objects":              item("c", "shell", `{}{}`) + output("c"),
	"a name with a dot":        item("c", "functions.shell", `{}`) + output("c"),
	"a name with tags":         item("c", "shell<|channel|>commentary", `{}`) + output("c"),
	"no name":                  item("c", "", `{}`) + output("c"),
	"a long name":              item("c", strings.Repeat("n", 65), `{}`) + output("c"),
	"an id twice":              item("c", "shell", `{}`) + item("c", "shell", `{}`) + output("c") + output("c"),
	"an id again":              item("c", "shell", `{}`) + output("c") + item("c", "shell", `{}`) + output("c"),
	"a long id":                item(strings.Repeat("x", 65), "shell", `{}`) + output(strings.Repeat("x", 65)),
	"no output":                item("c", "shell", `{}`),
	"an output twice":          item("c", "shell", `{}`) + output("c") + output("c"),
	"an output without call":   output("c"),
	"an output before":         output("c") + item("c", "shell", `{}`),
	"another role":             `{"type":"message","role":"critic","content":[{"type":"input_text","text":"no"}]},`,
	"an item of a newer Codex": `{"type":"thread_note","text":"x"},`,
}

func item(id, name, arguments string) string {
	return fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":%q,"arguments":%q},`, id, name, arguments)
}

func output(id string) string {
	return fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"done"},`, id)
}

// said is a message of a file.
func said(role, kind, text string) string {
	return fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":%q,"text":%q}]},`, role, kind, text)
}

// continued goes on for three turns with each of the histories, and runs a command.
func (r route) continued(t *testing.T, server *child) {
	const thread = "01a22350-0fdc-7301-b653-26680e0386b0"
	for name, items := range histories {
		t.Run(name, func(t *testing.T) {
			items = said("user", "input_text", "earlier") + items + said("assistant", "output_text", "first")
			raw := fmt.Sprintf(`{"model":"script","input":[%s]}`, strings.TrimSuffix(items+said("user", "input_text", "more"), ","))
			answer := must.Get(http.Post(server.url+"/v1/responses", "application/json", strings.NewReader(raw)))(t)
			answer.Body.Close()
			if answer.StatusCode < http.StatusBadRequest {
				t.Errorf("the server takes it as it is: %s", answer.Status)
			}
			f := newFolders(t)
			writeConfig(t, f.home, r.config(server, "approval_policy = \"never\"", ""))
			lines := fmt.Sprintf(`{"timestamp":"2026-11-28T17:59:39.001Z","type":"session_meta","payload":{"id":%q,"timestamp":"2026-11-28T17:59:39.001Z","cwd":%q,"originator":"codex_cli_rs","cli_version":"0.171.0"}}`+"\n", thread, f.cwd)
			for one := range strings.Lines(strings.ReplaceAll(items, "},{\"type", "},\n{\"type")) {
				lines += `{"timestamp":"2026-11-28T17:59:39.002Z","type":"response_item","payload":` + strings.TrimSuffix(strings.TrimSpace(one), ",") + "}\n"
			}
			write(t, filepath.Join(f.home, "sessions", "2026", "11", "28", "rollout-2026-11-28T17-59-39-"+thread+".jsonl"), lines)
			c := talk{start(t, f, "--engine", "native")}
			c.hello(`{}`)
			for _, prompt := range []string{"hello", wordRun, "again"} {
				c.ask(prompt, thread)
				c.completes()
			}
			if n := c.events("stream_error", ""); n > 0 {
				t.Errorf("the server refused %d requests", n)
			}
		})
	}
}

// broken goes on after calls that the server did not read: one that it left in the text, and one that its limit of tokens cut.
func (r route) broken(t *testing.T, server *child, file string) {
	t.Run("in the text", func(t *testing.T) {
		c := begin(t, r.config(server, "approval_policy = \"never\"", ""))
		c.ask(wordText, "")
		thread := c.completes().Values.ThreadID
		if _, err := os.Stat(filepath.Join(c.cmd.Dir, "made.txt")); err != nil {
			t.Errorf("the model was not told how to call: %v", err)
		}
		for range 2 {
			c.ask(wordText, thread)
			c.completes()
		}
	})
	t.Run("cut", func(t *testing.T) {
		server := startLlama(t, freePort(t), "-m", file, "-c", "8192", "--predict", "10")
		c := begin(t, r.config(server, "approval_policy = \"never\"", ""))
		c.ask(wordRun, "")
		thread := c.outcome().Values.ThreadID
		if _, err := os.Stat(filepath.Join(c.cmd.Dir, "made.txt")); err == nil {
			t.Error("half a call ran")
		}
		for range 2 {
			c.ask("hello", thread)
			c.completes()
		}
		if n := c.events("stream_error", ""); n > 0 {
			t.Errorf("the server refused %d requests", n)
		}
	})
}
