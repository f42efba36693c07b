package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/go-cmp/cmp"
)

// hostile is text that would set a terminal's title, change its colour, the direction of
// writing and the line, and cover other lines.
const hostile = "a\x1b]2;PWNED\x07\x1b[31mR\u202eE\nD\r\tx\u009by\u2028z\u0000"

// shownWord is hostile as a word of a command, shownLine as prose.
const (
	shownWord = `$'a\x1b]2;PWNED\x07\x1b[31mR\u{202e}E\nD\r\tx\u{9b}y\u{2028}z\x00'`
	shownLine = `a\x1b]2;PWNED\x07\x1b[31mR\u{202e}E D x\u{9b}y\u{2028}z\x00`
)

// shouter is an engine that emits hostile text. It waits a minute after each event.
type shouter struct{ *servertest.Engine }

func (shouter) List(context.Context, protocol.ListConversationsParams) (*protocol.ListConversationsResult, error) {
	return &protocol.ListConversationsResult{Items: []protocol.ConversationSummary{{ConversationID: "past", Preview: hostile}}}, nil
}

var shouts = []struct {
	event protocol.EventMsg
	shown string
}{
	{protocol.ExecCommandBegin{CallID: "1", Command: []string{"echo", hostile, "two words"}, Cwd: "/"}, "running echo " + shownWord + " 'two words'"},
	{protocol.MCPToolCallBegin{CallID: "2", Invocation: protocol.MCPInvocation{Server: hostile, Tool: "t"}}, "calling " + shownLine + "/t"},
	{protocol.BackgroundEvent{Message: hostile}, shownLine},
	{protocol.AgentMessage{Message: hostile}, shownLine},
	{protocol.AgentMessage{Message: "\n \n" + strings.Repeat("\u202e", 1000)}, strings.Repeat(`\u{202e}`, 25) + "…"},
	{protocol.AgentMessage{Message: "✔\ufe0f done"}, "✔ done"},
}

func newShouter() shouter {
	return shouter{&servertest.Engine{Turn: func(ctx context.Context, host engine.Host, _ []protocol.InputItem) error {
		for _, s := range shouts {
			host.Emit(s.event)
			<-time.After(time.Minute)
		}
		host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "3", Command: []string{"echo", hostile}, Cwd: "/"})
		return nil
	}}}
}

// loud is the answer of a client that cannot show a question, and says so with a hostile error.
func loud(context.Context) (string, error) { return "", &jsonrpc.Error{Code: -32000, Message: hostile} }

// progressOf returns the distinct messages of the progress in order.
func progressOf(t *testing.T, c *servertest.Client) (messages []string) {
	t.Helper()
	for _, raw := range c.Received("notifications/progress") {
		var p struct{ Message string }
		if err := json.Unmarshal(raw, &p); err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 || messages[len(messages)-1] != p.Message {
			messages = append(messages, p.Message)
		}
	}
	return messages
}

// raw reports whether a text has characters that a terminal does not show as they are.
func raw(text string) bool {
	return strings.ContainsFunc(strings.TrimPrefix(text, "\n"), func(r rune) bool { return !unicode.IsPrint(r) })
}

// TestTextOnOneLine checks that text of models, commands and programs reaches the one-line
// messages for people with every hidden character visible, and commands quoted as in
// questions. Events have it unchanged.
func TestTextOnOneLine(t *testing.T) {
	for _, era := range []servertest.Era{servertest.Handshake, servertest.Rounds, servertest.Polls} {
		t.Run(string(era), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testTextOnOneLine(t, era) })
		})
	}
}

func testTextOnOneLine(t *testing.T, era servertest.Era) {
	s := codexserver.New(newShouter(), &codexserver.Options{
		Home: t.TempDir(), Changes: codexserver.ChangeOptions{Off: true}, Approvals: elicit.Options{Timeout: time.Minute},
	})
	client := servertest.Join(t, s, servertest.Host{Era: era, Answer: loud, Meta: `"progressToken":"t"`})
	ask := func(method, members string) string {
		t.Helper()
		result, err := client.Send(t.Context(), method, members)
		if err != nil {
			t.Fatal(err)
		}
		return string(result)
	}
	modern, tasks := era != servertest.Handshake, era == servertest.Polls
	// strings that a person sees, in the answers
	see := func(where, answer string) {
		t.Helper()
		var tree any
		if err := json.Unmarshal([]byte(answer), &tree); err != nil {
			t.Fatal(err)
		}
		walk(tree, func(text string) {
			if raw(text) {
				t.Errorf("%s: %q", where, text)
			}
		})
	}
	begun := ask("tools/call", `"name":"codex","arguments":{"prompt":"p","background":true}`)
	see("the beginning", begun)
	id := servertest.ThreadOf(t, begun)
	call := make(chan string, 1)
	go func() {
		result, _ := client.Send(t.Context(), "tools/call", `"name":"codex","arguments":{"prompt":"p"}`)
		call <- string(result)
	}()
	task := ""
	for i, s := range shouts {
		<-time.After(30 * time.Second)
		waited := ask("tools/call", fmt.Sprintf(`"name":"codex-wait","arguments":{"threadIds":[%q],"seconds":0}`, id))
		see("codex-wait", waited)
		var content struct {
			StructuredContent struct{ Threads []struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(waited), &content); err != nil {
			t.Fatal(err)
		}
		if got := content.StructuredContent.Threads[0].Content; got != s.shown+", 30s" {
			t.Errorf("event %d: codex-wait says %q, want %q", i, got, s.shown)
		}
		listed := ask("tools/call", `"name":"codex-list","arguments":{}`)
		see("codex-list", listed)
		if want, err := json.Marshal(shownLine); err != nil || !strings.Contains(listed, `"preview":`+string(want)) {
			t.Errorf("codex-list: %s, %v", listed, err)
		}
		if tasks {
			if task == "" {
				var r struct{ TaskID string }
				if err := json.Unmarshal([]byte(<-call), &r); err != nil || r.TaskID == "" {
					t.Fatalf("no task: %v", err)
				}
				task = r.TaskID
			}
			got := ask("tasks/get", fmt.Sprintf(`"taskId":%q`, task))
			see("tasks/get", got)
			if !strings.Contains(got, `"statusMessage":`) {
				t.Errorf("tasks/get: %s", got)
			}
		}
		<-time.After(30 * time.Second)
	}
	<-time.After(time.Second)
	for _, m := range client.Received("notifications/message") {
		see("a log message", string(m))
	}
	if !modern && len(client.Received("notifications/message")) == 0 {
		t.Error("no log message about the question that failed")
	}
	if modern { // the question is open, and a client that cannot be asked is told so
		see("a question", client.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-wait","arguments":{"threadIds":[%q],"seconds":0},"_meta":%s}`, id, servertest.Capable(`"sampling":{}`))))
	}
	var want []string
	for _, s := range shouts {
		want = append(want, s.shown)
	}
	got := progressOf(t, client)
	for _, message := range got {
		if raw(message) {
			t.Errorf("progress: %q", message)
		}
	}
	want = slices.Compact(want)
	if !tasks {
		got = slices.DeleteFunc(got, func(s string) bool { return !slices.Contains(want, s) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
	}
	if !modern && !slices.ContainsFunc(client.Received("codex/event"), func(raw json.RawMessage) bool {
		var event struct{ Msg struct{ Command []string } }
		return json.Unmarshal(raw, &event) == nil && slices.Contains(event.Msg.Command, hostile)
	}) {
		t.Error("no event has the command as it is")
	}
	client.Close()
}

// walk calls f for each string in a tree of JSON, and in JSON in a string.
func walk(tree any, f func(string)) {
	switch v := tree.(type) {
	case string:
		if inner := any(nil); json.Unmarshal([]byte(v), &inner) == nil {
			walk(inner, f)
			return
		}
		f(v)
	case []any:
		for _, e := range v {
			walk(e, f)
		}
	case map[string]any:
		for _, e := range v {
			walk(e, f)
		}
	}
}

// TestProgressOfAQuestion checks that progress says "waiting for approval" if somebody is asked, and
// only then; and that a call that becomes a task sends none at once with its answer, where clients
// drop it.
func TestProgressOfAQuestion(t *testing.T) {
	const waiting = "waiting for approval"
	denies := approval.Rules{Deny: [][]string{{"touch"}}}
	desk := &servertest.Desk{Answer: servertest.Say(servertest.Decline)}
	for _, tt := range []struct {
		name    string
		era     servertest.Era
		answer  servertest.Answer
		options codexserver.Options
		want    bool
		silent  bool // no progress at all
	}{
		{name: "asked", era: servertest.Handshake, answer: loud, want: true},
		{name: "cannot be asked", era: servertest.Handshake},
		{name: "cannot be asked, but a desk", era: servertest.Handshake, options: codexserver.Options{Desk: desk}, want: true},
		{name: "ruled", era: servertest.Handshake, answer: loud, options: codexserver.Options{Rules: denies}},
		{name: "2026-07-28, asked", era: servertest.Rounds, answer: loud, want: true},
		{name: "2026-07-28, cannot be asked", era: servertest.Rounds},
		{name: "2026-07-28, ruled", era: servertest.Rounds, answer: loud, options: codexserver.Options{Rules: denies}},
		{name: "a task", era: servertest.Polls, answer: loud, silent: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := tt.options
				o.Home, o.Changes.Off = t.TempDir(), true
				c := servertest.Join(t, codexserver.New(&servertest.Engine{}, &o), servertest.Host{Era: tt.era, Answer: tt.answer, Meta: `"progressToken":"t"`})
				result, err := c.Send(t.Context(), "tools/call", `"name":"codex","arguments":{"prompt":"touch say:done"}`)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				messages := progressOf(t, c)
				if got := slices.Contains(messages, waiting); got != tt.want || tt.silent && len(messages) > 0 {
					t.Errorf("progress %q before %s", messages, result)
				}
				if tt.silent && !strings.Contains(string(result), `"resultType":"task"`) {
					t.Errorf("no task: %s", result)
				}
			})
		})
	}
}

// TestLogLevels sets each level in both eras. A warning is sent to clients that want warnings
// or more, but not to those that want only what is worse.
func TestLogLevels(t *testing.T) {
	for level, want := range map[mcptypes.LoggingLevel]bool{
		"debug": true, "info": true, "notice": true, "warning": true,
		"error": false, "critical": false, "alert": false, "emergency": false,
	} {
		for _, era := range []servertest.Era{servertest.Handshake, servertest.Rounds} {
			t.Run(string(era)+"/"+string(level), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // who cannot be asked is warned
					h := servertest.Host{Era: era}
					if era == servertest.Rounds {
						h.Meta = fmt.Sprintf(`"io.modelcontextprotocol/logLevel":%q`, level)
					}
					c := servertest.Join(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), h)
					if era == servertest.Handshake {
						c.Ask(t, "logging/setLevel", fmt.Sprintf(`{"level":%q}`, level))
					}
					c.Use(t.Context(), "codex", `{"prompt":"p"}`)
					synctest.Wait()
					if got := len(c.Received("notifications/message")) > 0; got != want {
						t.Errorf("warned %v", got)
					}
				})
			})
		}
	}
}
