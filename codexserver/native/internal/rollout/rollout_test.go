package rollout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const id = "0199a2b3-c4d5-7000-8000-0123456789ab"

var meta = protocol.SessionMeta{
	ID: id, Timestamp: "2025-09-30T10:11:12.000Z", Cwd: "/work", Originator: "tests", CLIVersion: "1",
	Git: &protocol.GitInfo{Branch: "main"},
}

func userMessage(text string) protocol.ResponseItem {
	return protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: text}}}
}

func create(t *testing.T) *rollout.Writer {
	t.Helper()
	path := rollout.Path(t.TempDir(), id, time.Date(2025, 9, 30, 10, 11, 12, 0, time.Local))
	w := must.Get(rollout.Create(path, meta, nil))(t)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func TestRoundTrip(t *testing.T) {
	w := create(t)
	if want := filepath.Join("sessions", "2025", "09", "30", "rollout-2025-09-30T10-11-12-"+id+".jsonl"); !strings.HasSuffix(w.Path(), want) {
		t.Errorf("path %s, want …%s", w.Path(), want)
	}
	items := []protocol.ResponseItem{
		userMessage("hi \u2028 \"quoted\"\n"),
		protocol.FunctionCallItem{Name: "shell", Arguments: "{", CallID: "c"},
		protocol.FunctionCallOutputItem{CallID: "c", Output: strings.Repeat("long ", 1<<20)},
		protocol.RawItem{Type: "new", Raw: []byte(`{"type":"new","x":[1,2]}`)},
	}
	for _, item := range items {
		must.OK(t, w.Item(item))
	}
	now := protocol.TurnContext{Cwd: "/work", ApprovalPolicy: protocol.ApprovalNever, Model: "m", Summary: protocol.SummaryAuto,
		SandboxPolicy: protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}}
	usage := &protocol.TokenUsageInfo{LastTokenUsage: protocol.TokenUsage{TotalTokens: 7}}
	for _, err := range []error{
		w.TurnContext(now), w.Event(protocol.TokenCount{Info: usage}), w.Event(protocol.AgentMessage{Message: "yes"}), w.Close(),
	} {
		must.OK(t, err)
	}
	got := must.Get(rollout.Load(w.Path()))(t)
	want := &rollout.Rollout{Meta: meta, Items: items, Context: &now, Usage: usage, Events: got.Events}
	must.Equal(t, "result", want, got)
	if len(got.Events) != 2 || string(got.Events[1]) != `{"type":"agent_message","message":"yes"}` {
		t.Errorf("events %s", got.Events)
	}
	if err := w.Item(userMessage("late")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("an item after the end: %v", err)
	}
	must.OK(t, w.Close()) // the second time
	if _, err := rollout.Create(w.Path(), meta, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that exists: %v", err)
	}
}

// TestTornAtEveryByte cuts the file at each byte: the complete lines load, and the file can continue.
func TestTornAtEveryByte(t *testing.T) {
	w := create(t)
	for i := range 3 {
		must.OK(t, w.Item(userMessage(fmt.Sprint("message ", i))))
	}
	whole := must.Get(os.ReadFile(w.Path()))(t)
	first := bytes.IndexByte(whole, '\n') + 1
	for end := range len(whole) + 1 {
		must.OK(t, os.WriteFile(w.Path(), whole[:end], 0o600))
		_, err := rollout.Load(w.Path())
		if (err == nil) != (end >= first-1) { // a line end may be missing
			t.Fatalf("%d bytes: %v", end, err)
		}
		if err != nil {
			continue
		}
		again := rollout.At(w.Path(), nil)
		must.OK(t, again.Take(func() error { return nil }), again.Item(userMessage("after")), again.Close())
		r, err := rollout.Load(w.Path())
		if err != nil || r.Skipped != 0 {
			t.Fatalf("%d bytes: %d lines skipped, %v", end, r.Skipped, err)
		}
		n := bytes.Count(whole[:end], []byte("\n"))
		if end < len(whole) && whole[end] == '\n' {
			n++
		}
		if len(r.Items) != n { // the first line is not an item, the new one is
			t.Fatalf("%d bytes: %d items, want %d", end, len(r.Items), n)
		}
	}
}

func TestReadOfFilesOfOthers(t *testing.T) {
	const head = `{"timestamp":"t","type":"session_meta","payload":{"id":"` + id + `","cwd":"/w","instructions":null}}` + "\n"
	line := func(kind, payload string) string {
		return `{"timestamp":"t","type":"` + kind + `","payload":` + payload + "}\n"
	}
	user := func(text string) string {
		return line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"`+text+`"}]}`)
	}
	output := func(json string) string {
		return line("response_item", `{"type":"function_call_output","call_id":"c","output":`+json+`}`)
	}
	outputs := func(texts ...string) (items []protocol.ResponseItem) {
		for _, text := range texts {
			items = append(items, protocol.FunctionCallOutputItem{CallID: "c", Output: text})
		}
		return items
	}
	for _, tt := range []struct {
		name, in string
		items    []protocol.ResponseItem
		before   int
		summary  string
		skipped  int
		fails    bool
	}{
		{name: "empty", in: "", fails: true},
		{name: "no first line", in: user("a"), fails: true},
		{name: "first line later", in: user("a") + head + user("b"), items: []protocol.ResponseItem{userMessage("a"), userMessage("b")}},
		{name: "second first line", in: head + strings.Replace(head, "0199", "0200", 1) + user("a"), items: []protocol.ResponseItem{userMessage("a")}},
		{name: "unknown kind", in: head + line("future", `{"x":1}`) + user("a"), items: []protocol.ResponseItem{userMessage("a")}},
		{name: "garbage between", in: head + "garbage\n\n{}\n" + user("a"), items: []protocol.ResponseItem{userMessage("a")}, skipped: 1},
		{name: "item of another shape", in: head + line("response_item", `{"type":"function_call_output","call_id":7,"output":""}`) + user("a"),
			items: []protocol.ResponseItem{userMessage("a")}, skipped: 1},
		{name: "outputs of other shapes", in: head + output(`[1]`) + output(`7`) + output(`{"content":"x","success":true}`) + output(`[{"type":"text","text":7}]`) + output(`null`) + output(`[]`),
			items: outputs(`[1]`, `7`, `{"content":"x","success":true}`, `[{"type":"text","text":7}]`, "", "")},
		{name: "half a character, another byte, and a member twice", in: head + output(`"a\ud83d"`) + output("\"a\xff\"") + output(`"a","output":"b"`),
			items: outputs("a\uFFFD", "a\uFFFD", "b")},
		{name: "arguments that are an object", in: head + line("response_item", `{"type":"function_call","call_id":"c","name":"f","arguments":{"a":[1]}}`),
			items: []protocol.ResponseItem{protocol.FunctionCallItem{Name: "f", Arguments: `{"a":[1]}`, CallID: "c"}}},
		{name: "a content that is a text", in: head + line("response_item", `{"type":"message","role":"user","content":"a"}`), items: []protocol.ResponseItem{userMessage("a")}},
		{name: "line ends of Windows, and zeros", in: strings.ReplaceAll(head+user("a"), "\n", "\r\n") + "\x00\x00\x00", items: []protocol.ResponseItem{userMessage("a")}, skipped: 1},
		{name: "compacted, rebuilt from the message", in: head + user("a") + line("compacted", `{"message":"sum"}`) + user("b"),
			items: []protocol.ResponseItem{userMessage("b")}, before: 1, summary: "sum"},
		{name: "compacted with its history", in: head + user("a") + line("compacted", `{"message":"sum","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"new"}]}]}`) + user("b"),
			items: []protocol.ResponseItem{userMessage("new"), userMessage("b")}},
		{name: "compacted with an item that cannot be read", in: head + user("a") + line("compacted", `{"message":"sum","replacement_history":[{"type":"message","role":7}]}`) + user("b"),
			items: []protocol.ResponseItem{userMessage("a"), userMessage("b")}, skipped: 1},
		{name: "an output of parts, behind that of another call", items: []protocol.ResponseItem{
			protocol.FunctionCallOutputItem{CallID: "c", Output: "one\n[image: it follows as a picture]\n[audio: left out]"},
			protocol.CustomToolCallOutputItem{CallID: "d", Output: "two"},
			protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_image", ImageURL: "data:x"}}}, userMessage("a"),
		}, in: head + line("response_item", `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"one"},{"type":"input_image","image_url":"data:x","detail":"high"},{"type":"audio"}]}`) +
			line("response_item", `{"type":"custom_tool_call_output","call_id":"d","output":[{"type":"input_text","text":"two"}]}`) + user("a")},
		{name: "compacted with an output of parts", items: []protocol.ResponseItem{protocol.FunctionCallOutputItem{CallID: "c", Output: "one"}},
			in: head + user("a") + line("compacted", `{"message":"sum","replacement_history":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"one"}]}]}`)},
		{name: "the last line without its end", in: head + strings.TrimSuffix(user("a"), "\n"), items: []protocol.ResponseItem{userMessage("a")}},
		{name: "a part of the last line", in: head + user("a") + strings.TrimSuffix(user("b"), "}\n"), items: []protocol.ResponseItem{userMessage("a")}, skipped: 1},
		{name: "another order", in: head + `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]},"timestamp":"t"}` + "\n",
			items: []protocol.ResponseItem{userMessage("a")}},
		{name: "an escaped kind", in: head + line(`response\u005fitem`, `{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}`),
			items: []protocol.ResponseItem{userMessage("a")}},
		{name: "a broken payload", in: head + line("response_item", `{"type":"message"`) + user("a"), items: []protocol.ResponseItem{userMessage("a")}, skipped: 1},
		{name: "an event of another shape", in: head + line("event_msg", `{"type":"token_count","info":7}`) + user("a"), items: []protocol.ResponseItem{userMessage("a")}, skipped: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := rollout.Read(strings.NewReader(tt.in))
			if (err != nil) != tt.fails {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			if d := cmp.Diff(tt.items, r.Items); d != "" || r.Skipped != tt.skipped || len(r.Before) != tt.before || r.Summary != tt.summary || r.Meta.ID != id {
				t.Errorf("%+v (-want +got):\n%s", r, d)
			}
		})
	}
}

func TestFindAndArchive(t *testing.T) {
	home := t.TempDir()
	var paths []string
	for i, day := range []int{1, 3, 2} {
		at := time.Date(2025, 9, day, 0, 0, 0, 0, time.Local)
		m := meta
		m.ID = fmt.Sprintf("0199a2b3-c4d5-7000-8000-00000000000%d", i)
		w := must.Get(rollout.Create(rollout.Path(home, m.ID, at), m, nil))(t)
		paths = append(paths, w.Path())
		must.OK(t, w.Close())
	}
	must.OK(t, os.WriteFile(filepath.Join(home, "sessions", "rollout-notes.jsonl"), nil, 0o600))
	folder := rollout.Path(home, id, time.Date(2025, 9, 4, 0, 0, 0, 0, time.Local))
	must.OK(t, os.MkdirAll(folder, 0o700))
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := rollout.Paths(ended, home); !errors.Is(err, context.Canceled) {
		t.Errorf("Paths after the end: %v", err)
	}
	all := must.Get(rollout.Paths(t.Context(), home))(t)
	must.Equal(t, "newest first", []string{paths[1], paths[2], paths[0]}, all)
	found, err := rollout.Find(t.Context(), home, "0199a2b3-c4d5-7000-8000-000000000001")
	if err != nil || found != paths[1] {
		t.Errorf("Find: %s, %v", found, err)
	}
	for _, id := range []string{id, "*", "../x"} {
		if _, err := rollout.Find(t.Context(), home, id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Find %s: %v", id, err)
		}
	}
}

func TestTurns(t *testing.T) {
	const (
		begins   = `event_msg {"type":"task_started","turn_id":"k","model_context_window":null}`
		other    = `event_msg {"type":"task_started","turn_id":"l","model_context_window":null}`
		said     = `event_msg {"type":"user_message","message":"hi"}`
		hi       = `response_item {"type":"message","role":"user","content":[]}`
		call     = `response_item {"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}`
		ends     = `event_msg {"type":"task_complete","turn_id":"k","last_agent_message":"bye"}`
		fails    = `event_msg {"type":"error","message":"e"}`
		aborts   = `event_msg {"type":"turn_aborted","turn_id":"k","reason":"interrupted"}`
		replaced = `compacted {"message":"s","replacement_history":[{"type":"message","role":"user","content":[]}]}`
	)
	var many []string // of which old ones are left out
	var newest []rollout.Turn
	for i := range 18 {
		many = append(many, fmt.Sprintf(`event_msg {"type":"task_started","turn_id":"turn-%d"}`, i))
		newest = append(newest, rollout.Turn{ID: fmt.Sprint("turn-", i)})
	}
	bye := protocol.TaskComplete{TurnID: "k", LastAgentMessage: new("bye")}
	for _, tt := range []struct {
		name  string
		lines []string
		want  []rollout.Turn
	}{
		{"many", many, newest[2:]},
		{"without a turn", []string{said, hi, call, ends}, nil},
		{"a beginning alone", []string{hi, begins}, []rollout.Turn{{ID: "k"}}},
		{"a call", []string{hi, begins, hi, said, call}, []rollout.Turn{{ID: "k", Items: 2, Said: true}}},
		{"continued", []string{begins, hi, said, call, begins, hi, said}, []rollout.Turn{{ID: "k", Items: 3, Said: true}}},
		{"ended", []string{begins, hi, said, ends, hi}, []rollout.Turn{{ID: "k", Items: 2, Said: true, End: bye}}},
		{"ended twice", []string{begins, hi, said, ends, fails}, []rollout.Turn{{ID: "k", Items: 1, Said: true, End: bye}}},
		{"failed", []string{begins, hi, said, fails}, []rollout.Turn{{ID: "k", Items: 1, Said: true, End: protocol.Error{Message: "e"}}}},
		{"aborted", []string{begins, aborts}, []rollout.Turn{{ID: "k", End: protocol.TurnAborted{TurnID: "k", Reason: "interrupted"}}}},
		{"again after its end", []string{begins, ends, begins}, []rollout.Turn{{ID: "k", End: bye}, {ID: "k"}}},
		{"with another turn after it", []string{begins, hi, said, other, hi}, []rollout.Turn{{ID: "k", Items: 2, Said: true}, {ID: "l", Items: 1}}},
		{"compacted", []string{begins, hi, call, call, replaced, call}, []rollout.Turn{{ID: "k", Items: 2}}},
		{"what is no event", []string{begins, `event_msg {"type":"task_started","turn_id":7}`}, []rollout.Turn{{ID: "k"}}},
	} {
		var in strings.Builder
		in.WriteString(`{"timestamp":"t","type":"session_meta","payload":{"id":"` + id + `"}}` + "\n")
		for _, line := range tt.lines {
			kind, payload, _ := strings.Cut(line, " ")
			fmt.Fprintf(&in, `{"timestamp":"2025-09-30T10:00:00.000Z","type":"%s","payload":%s}`+"\n", kind, payload)
		}
		r := must.Get(rollout.Read(strings.NewReader(in.String())))(t)
		must.Equal(t, tt.name, tt.want, r.Turns, cmpopts.IgnoreUnexported(rollout.Turn{}), cmpopts.EquateEmpty())
		for _, raw := range r.Events {
			if strings.Contains(string(raw), "task_") || strings.Contains(string(raw), `"error"`) {
				t.Errorf("%s: the past shows %s", tt.name, raw)
			}
		}
		if last := r.Last(); (last == nil) != (tt.want == nil) || last != nil && last.ID != tt.want[len(tt.want)-1].ID {
			t.Errorf("%s: last %v", tt.name, last)
		}
	}
}

// TestOrdinals continues files whose lines have numbers, and files whose lines have none.
func TestOrdinals(t *testing.T) {
	const stamp = `{"timestamp":"2026-11-25T00:44:05.593Z",`
	long := strings.Repeat("x", 200_000)
	for name, tt := range map[string]struct{ last, want string }{
		"numbers":     {stamp + `"ordinal":13,"type":"event_msg","payload":{"type":"task_complete"}}`, "14 15 17"},
		"a long line": {stamp + `"ordinal":7,"type":"event_msg","payload":{"type":"x","text":"` + long + `"}}`, "8 9 11"},
		"none":        {stamp + `"type":"event_msg","payload":{"type":"x","text":"\",\"ordinal\":3,\"type\":\""}}`, "- - -"},
		"not a line":  {`half`, "- - -"},
		"a word":      {stamp + `"ordinal":"13","type":"event_msg","payload":{}}`, "- - -"},
		"too large":   {stamp + `"ordinal":99999999999999999999,"type":"event_msg","payload":{}}`, "- - -"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rollout.jsonl")
			write := func(flag int, text string) {
				f, err := os.OpenFile(path, flag|os.O_CREATE|os.O_WRONLY, 0o600)
				if err == nil {
					_, err = f.WriteString(text)
				}
				if err != nil || f.Close() != nil {
					t.Fatal(err)
				}
			}
			write(0, stamp+`"ordinal":0,"type":"session_meta","payload":{}}`+"\n"+tt.last+"\n")
			w := rollout.At(path, nil)
			must.OK(t, w.Take(func() error { return nil }))
			for i := range 3 {
				if i == 2 && !strings.HasPrefix(tt.want, "-") { // another program has written a line
					var last int
					must.Get(fmt.Sscanf(tt.want, "%d", &last))(t)
					write(os.O_APPEND, fmt.Sprintf(stamp+`"ordinal":%d,"type":"event_msg","payload":{}}`+"\n", last+2))
				}
				must.OK(t, w.Event(protocol.AgentMessage{Message: `","type":"`}))
			}
			b := must.Get(os.ReadFile(path))(t)
			var got []string
			for line := range strings.Lines(string(b)) {
				if !strings.Contains(line, "agent_message") {
					continue
				}
				number := "-"
				if _, rest, ok := strings.Cut(line, `Z","ordinal":`); ok {
					number, _, _ = strings.Cut(rest, ",")
				}
				got = append(got, number)
				if !strings.HasSuffix(line, `"message":"\",\"type\":\""}}`+"\n") {
					t.Errorf("line %s", line)
				}
			}
			must.Equal(t, "numbers", tt.want, strings.Join(got, " "))
		})
	}
}
