package model_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// streamed is what a stream contains, or why it has failed.
type streamed struct {
	Text, Reasoning string   // with | between messages
	Calls           []string // each a name and its arguments
	IDs             string   // of the calls, which differ; * is any
	Usage           *struct{ Input, Output, Total, Cached, Reasoning int64 }
	Cut, Error      string // parts of the error, with & between them
	Again           bool   // another attempt may succeed
}

// TestStreams plays streams in the forms of many providers, whose rows name where the form is from, and in forms that a
// server could have: what is whole counts whatever comes with it, what may lack a part does not, and the provider's words
// for a refusal reach the user.
func TestStreams(t *testing.T) {
	file := must.Get(os.ReadFile("testdata/streams.json"))(t)
	var rows []struct {
		Provider, What, Wire string // chat without one
		Statuses             []int  // 200 without one
		Events               []json.RawMessage
		Body                 string // without events
		Want                 streamed
	}
	must.OK(t, json.Unmarshal(file, &rows))
	if len(rows) < 200 {
		t.Errorf("%d streams", len(rows))
	}
	for _, row := range rows {
		for _, event := range row.Events {
			var text string
			if json.Unmarshal(event, &text) != nil {
				text = string(event)
			}
			row.Body += sse(text)
		}
		for wire := range strings.FieldsSeq(cmp.Or(row.Wire, "chat")) {
			for _, status := range append(row.Statuses, 200)[:max(len(row.Statuses), 1)] {
				a := &answers{all: []answer{{body: row.Body, status: status}}}
				resp, err := client(a, config.Provider{WireAPI: config.WireAPI(wire)}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
				got := contents(t, resp, row.Want.IDs)
				if err != nil {
					got.Error, got.Again = row.Want.Error, retryable(err)
					for part := range strings.SplitSeq(row.Want.Error, " & ") {
						if part == "" || !strings.Contains(err.Error(), part) {
							got.Error = err.Error()
						}
					}
				}
				must.Equal(t, fmt.Sprintf("%s %s, %s %d", row.Provider, row.What, wire, status), row.Want, got)
			}
		}
	}
}

// contents returns what a response has, with ids as they are wanted.
func contents(t *testing.T, r *model.Response, ids string) (s streamed) {
	t.Helper()
	if r == nil {
		return s
	}
	s.Cut = string(r.Cut)
	if u := r.Usage; u != nil {
		s.Usage = &struct{ Input, Output, Total, Cached, Reasoning int64 }{u.InputTokens, u.OutputTokens, u.TotalTokens, u.CachedInputTokens, u.ReasoningOutputTokens}
	}
	want, had, messages := strings.Fields(ids), map[string]bool{}, 0
	call := func(id, name, input string) {
		if id == "" || had[id] {
			t.Errorf("the id %q of the call of %s is empty, or comes twice", id, name)
		}
		if had[id] = true; len(s.Calls) < len(want) && want[len(s.Calls)] == "*" {
			id = "*"
		}
		s.Calls = append(s.Calls, name+" "+input)
		if ids != "" {
			s.IDs = strings.TrimSpace(s.IDs + " " + id)
		}
	}
	for _, item := range r.Items {
		switch item := item.(type) {
		case protocol.MessageItem:
			if messages++; messages > 1 {
				s.Text += "|"
			}
			for _, part := range item.Content {
				s.Text += part.Text
			}
		case protocol.ReasoningItem:
			for _, part := range append(item.Summary, item.Content...) {
				if part.Type != model.CallSigns {
					s.Reasoning += part.Text
				}
			}
		case protocol.FunctionCallItem:
			call(item.CallID, item.Name, item.Arguments)
		case protocol.CustomToolCallItem:
			call(item.CallID, item.Name, item.Input)
		default:
			t.Errorf("an item of the type %T", item)
		}
	}
	return s
}

// TestItems has streams whose items are compared whole.
func TestItems(t *testing.T) {
	delta := func(s string) string { return `{"choices":[{"delta":` + s + `}]}` }
	done := func(item string) string { return `{"type":"response.output_item.done","item":` + item + `}` }
	reasoning := func(kind, text string) protocol.ReasoningItem {
		return protocol.ReasoningItem{Summary: []protocol.ReasoningText{}, Content: []protocol.ReasoningText{{Type: kind, Text: text}}}
	}
	for _, tt := range []struct {
		wire   config.WireAPI
		stream string
		want   []protocol.ResponseItem // nil for too many
	}{
		{"chat", sse(delta(`{"reasoning":"a"}`), delta(`{"reasoning_content":"b"}`), delta(`{"reasoning":{"text":"c"}}`), delta(`{"content":"d"}`), chatDone),
			[]protocol.ResponseItem{reasoning("text", "abc"), text("d")}},
		{"chat", sse(delta(`{"reasoning":"a","reasoning_content":"a"}`), delta(`{"content":"d"}`), chatDone), []protocol.ResponseItem{reasoning("reasoning_text", "a"), text("d")}},
		{"chat", sse(delta(`{"content":"so"}`), delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`), chatDone),
			[]protocol.ResponseItem{text("so"), call("a", "f", "{}")}},
		{"responses", sse(
			done(`{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"ENC"}`),
			done(`{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}]}`),
			done(`{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}"}`),
			done(`{"type":"custom_tool_call","id":"x","call_id":"d","name":"apply_patch","input":"free"}`),
			done(`{"type":"something_new","id":"n","more":[1]}`), `{"type":"response.completed"}`),
			[]protocol.ResponseItem{
				protocol.ReasoningItem{Summary: []protocol.ReasoningText{{Type: "summary_text", Text: "s"}}, EncryptedContent: new("ENC")},
				text("hi"), call("c", "f", "{}"), protocol.CustomToolCallItem{CallID: "d", Name: "apply_patch", Input: "free"},
				protocol.RawItem{Type: "something_new", Raw: []byte(`{"type":"something_new","id":"n","more":[1]}`)},
			}},
		{"responses", sse(slices.Repeat([]string{done(`{"type":"message","role":"assistant","content":"x"}`)}, 513)...), nil},
	} {
		resp, err := client(&answers{all: []answer{{body: tt.stream}}}, config.Provider{WireAPI: tt.wire}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
		if tt.want == nil && err != nil && strings.Contains(err.Error(), "more than 512 items") {
			continue
		}
		must.OK(t, err)
		must.Equal(t, tt.stream, tt.want, resp.Items)
	}
}

// TestAsOpenAIReads reads the streams of scripted turns as OpenAI's Go library does. The module test/interop reads
// them with the library, and checks the file.
func TestAsOpenAIReads(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/openai-go.json"))(t)
	type read struct {
		Text, Reasoning string
		Calls           []struct{ ID, Name, Arguments string }
		Usage           protocol.TokenUsage
		Failed          bool
	}
	var rows map[string]struct {
		Wire config.WireAPI
		Turn providertest.Turn
		Want read
	}
	must.OK(t, json.Unmarshal(text, &rows))
	if len(rows) < 16 {
		t.Errorf("only %d turns", len(rows))
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			p := providertest.New(row.Turn)
			defer p.Close()
			c := &model.Client{
				Provider: config.Provider{BaseURL: p.BaseURL(), WireAPI: row.Wire},
				HTTP:     http.DefaultClient, Getenv: func(string) string { return "" }, MaxBytes: 1 << 20,
			}
			resp, err := c.Stream(t.Context(), &model.Request{Model: "m"}, func(protocol.EventMsg) {})
			var ids []string
			for _, c := range row.Want.Calls {
				ids = append(ids, c.ID)
			}
			read := contents(t, resp, strings.Join(ids, " "))
			if row.Wire != config.WireResponses {
				read.Reasoning = "" // which the library does not read there
			}
			want := streamed{Text: row.Want.Text, Reasoning: row.Want.Reasoning, IDs: strings.Join(ids, " "), Usage: read.Usage}
			for _, c := range row.Want.Calls {
				want.Calls = append(want.Calls, c.Name+" "+c.Arguments)
			}
			must.Equal(t, "as openai-go reads it", want, read)
			if usage := (protocol.TokenUsage{}); (err != nil) != row.Want.Failed || err == nil && resp.Usage != nil && *resp.Usage != row.Want.Usage || err == nil && resp.Usage == nil && usage != row.Want.Usage {
				t.Errorf("%v, %+v, want %+v", err, resp, row.Want)
			}
		})
	}
}

// TestErrorsOfProviders reads what providers answer when the context is full or the model takes
// no images, and what resembles it. Each row of the file names its source.
func TestErrorsOfProviders(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/errors.json"))(t)
	var rows []struct {
		Provider, Source string
		Status           int    // of an answer with the body
		Body             string // or
		Stream           string // an event of a stream
		Want             string // "full", "images", "refused" or "retry"
	}
	must.OK(t, json.Unmarshal(text, &rows))
	for _, row := range rows {
		for _, wire := range []config.WireAPI{config.WireChat, config.WireResponses} {
			a := answer{status: row.Status, body: row.Body}
			if row.Stream != "" {
				a.body = sse(row.Stream)
				if wire == config.WireResponses {
					var e struct{ Error json.RawMessage }
					must.OK(t, json.Unmarshal([]byte(row.Stream), &e))
					a.body = sse(`{"type":"error","error":` + string(e.Error) + `}`)
				}
			}
			provider := &answers{all: []answer{a, {body: sse(`{"type":"response.completed"}`, chatDone)}}}
			c := client(provider, config.Provider{WireAPI: wire})
			req := &model.Request{Model: "m", Items: []protocol.ResponseItem{protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{
				{Type: "input_text", Text: "look"}, {Type: "input_image", ImageURL: "data:picture"},
			}}}}
			told := 0
			stream := func() error {
				_, err := c.Stream(t.Context(), req, func(e protocol.EventMsg) {
					if _, ok := e.(protocol.BackgroundEvent); ok {
						told++
					}
				})
				return err
			}
			err := stream()
			got := "refused"
			if err == nil { // the next request has no images either
				err = stream()
				got = "images"
				for i, body := range provider.bodies {
					if i > 0 == strings.Contains(body, "data:picture") || i > 0 && !strings.Contains(body, "cannot take images") {
						t.Errorf("request %d: %s", i, body)
					}
				}
				if len(provider.bodies) != 3 || told != 1 {
					t.Errorf("%d requests, and told %d times", len(provider.bodies), told)
				}
			}
			if again := retryable(err); again {
				got = "retry"
			}
			if errors.Is(err, model.ErrContextWindow) {
				got = "full"
			}
			if got != row.Want {
				t.Errorf("%s (%s) on the wire %s: %s, want %s: %v", row.Provider, row.Source, wire, got, row.Want, err)
			}
		}
	}
}
