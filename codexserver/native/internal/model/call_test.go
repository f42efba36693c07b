package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestCallsInPieces joins the pieces of calls, which servers name and number in their own ways. Each
// piece is an event; pieces in one event have a blank between them.
func TestCallsInPieces(t *testing.T) {
	piece := func(index, id, name, arguments string) string {
		var b strings.Builder
		b.WriteString("{")
		if index != "" {
			fmt.Fprintf(&b, `"index":%s,`, index)
		}
		if id != "-" {
			fmt.Fprintf(&b, `"id":%q,`, id)
		}
		fmt.Fprintf(&b, `"function":{"name":%q,"arguments":%q}}`, name, arguments)
		return b.String()
	}
	for _, tt := range []struct {
		name   string
		events [][]string
		after  []string // pieces behind the finish reason
		want   []string // each an id, a name and arguments; "*" is any id
	}{
		{"whole calls with one index and no ids", [][]string{{piece("0", "", "f", `{"x":1}`)}, {piece("0", "", "f", `{"x":2}`)}, {piece("0", "", "g", `{"x":1}`)}}, nil, []string{`* f {"x":1}`, `* f {"x":2}`, `* g {"x":1}`}},
		{"without the member id", [][]string{{piece("0", "-", "f", `{"x":1}`)}, {piece("0", "-", "f", `{"x":2}`)}}, nil, []string{`* f {"x":1}`, `* f {"x":2}`}},
		{"in one event", [][]string{{piece("0", "", "f", `{"x":1}`), piece("0", "", "f", `{"x":2}`)}}, nil, []string{`* f {"x":1}`, `* f {"x":2}`}},
		{"equal ones without ids are two", [][]string{{piece("0", "", "f", `{"x":1}`)}, {piece("0", "", "f", `{"x":1}`)}}, nil, []string{`* f {"x":1}`, `* f {"x":1}`}},
		{"without arguments, without ids", [][]string{{piece("0", "", "f", `{}`)}, {piece("0", "", "f", `{}`)}}, nil, []string{`* f {}`, `* f {}`}},
		{"one index, in pieces, without ids", [][]string{{piece("0", "", "f", `{"x":`)}, {piece("0", "", "", `1}`)}, {piece("0", "", "g", `{"y"`)}, {piece("0", "", "", `:[{}]}`)}}, nil, []string{`* f {"x":1}`, `* g {"y":[{}]}`}},
		{"one index and one id", [][]string{{piece("0", "a", "f", `{"x":1}`)}, {piece("0", "a", "f", `{"x":2}`)}}, nil, []string{`a f {"x":1}`, `* f {"x":2}`}},
		{"one id and two indexes", [][]string{{piece("0", "a", "f", `{"x":1}`)}, {piece("1", "a", "g", `{"x":1}`)}}, nil, []string{`a f {"x":1}`, `* g {"x":1}`}},
		{"one id and two indexes, in turns", [][]string{{piece("0", "a", "f", `{"x":`)}, {piece("1", "a", "f", `{"x":`)}, {piece("0", "a", "", `1}`)}, {piece("1", "a", "", `2}`)}}, nil, []string{`a f {"x":1}`, `* f {"x":2}`}},
		{"three with one id", [][]string{{piece("0", "a", "f", `{}`)}, {piece("1", "a", "f", `{"x":2}`)}, {piece("2", "a", "f", `{"x":3}`)}}, nil, []string{`a f {}`, `* f {"x":2}`, `* f {"x":3}`}},
		{"another id with each piece", [][]string{{piece("0", "a", "f", `{"x":`)}, {piece("0", "b", "", `"{`)}, {piece("0", "c", "", `"}`)}, {piece("0", "d", "", ``)}}, nil, []string{`a f {"x":"{"}`}},
		{"another id with each piece, without an index", [][]string{{piece("", "a", "f", `{"x":`)}, {piece("", "b", "", `1}`)}}, nil, []string{`a f {"x":1}`}},
		{"another id and the name with each piece", [][]string{{piece("0", "a", "f", `{"x":`)}, {piece("0", "b", "f", `1}`)}}, nil, []string{`a f {"x":1}`}},
		{"one call at two indexes", [][]string{{piece("0", "a", "f", `{"x":1,"y":2}`)}, {piece("1", "a", "f", `{"y": 2, "x": 1.0}`)}}, nil, []string{`a f {"x":1,"y":2}`}},
		{"the name, then the arguments at another index", [][]string{{piece("0", "a", "f", ``)}, {piece("1", "a", "", `{"x":`)}, {piece("1", "a", "", `1}`)}}, nil, []string{`a f {"x":1}`}},
		{"the name twice, then the arguments", [][]string{{piece("0", "a", "f", ``)}, {piece("1", "a", "f", `{"x":1}`)}}, nil, []string{`a f {"x":1}`}},
		{"a call again at the end", [][]string{{piece("0", "a", "f", `{"x":`)}, {piece("0", "-", "", `1}`)}}, []string{piece("0", "a", "f", `{"x":1}`)}, []string{`a f {"x":1}`}},
		{"a call again, without its name", [][]string{{piece("0", "a", "f", `{"x":1}`)}, {piece("0", "a", "", `{"x":1}`)}}, nil, []string{`a f {"x":1}`}},
		{"a call again, written otherwise, without its id and name", [][]string{{piece("0", "a", "f", `{"x": ["-c", 1]}`)}, {piece("0", "-", "", `{"x":["-c",1]}`)}}, nil, []string{`a f {"x": ["-c", 1]}`}},
		{"a call again, without its id", [][]string{{piece("0", "a", "f", `{"x":1}`)}, {piece("0", "-", "f", `{"x": 1}`)}}, nil, []string{`a f {"x":1}`}},
		{"another call without an id at its index", [][]string{{piece("0", "a", "f", `{"x":1}`)}, {piece("0", "-", "f", `{"x":2}`)}}, nil, []string{`a f {"x":1}`, `* f {"x":2}`}},
		{"arguments as a text", [][]string{{piece("0", "a", "f", `"{\"x\":`)}, {piece("0", "-", "", `\"}\"}"`)}}, nil, []string{`a f {"x":"}"}`}},
		{"a text as arguments", [][]string{{piece("0", "a", "f", `"x"`)}}, nil, []string{`a f "x"`}},
		{"two calls again", [][]string{{piece("0", "a", "f", `{"x":1}`)}, {piece("1", "b", "g", `{}`)}, {piece("0", "a", "f", `{"x":1}`), piece("1", "b", "g", `{}`)}}, nil, []string{`a f {"x":1}`, `b g {}`}},
		{"an empty object holds the place", [][]string{{piece("0", "a", "f", `{}`)}, {piece("0", "-", "", `{"x"`)}, {piece("0", "-", "", `:1}`)}}, nil, []string{`a f {"x":1}`}},
		{"two objects as arguments of one", [][]string{{piece("0", "a", "f", `{"x":1}{"x":2}`)}}, nil, []string{`a f {"x":1}{"x":2}`}},
		{"a brace in a text", [][]string{{piece("0", "a", "f", `{"x":"}\"`)}, {piece("0", "a", "f", `{"}`)}}, nil, []string{`a f {"x":"}\"{"}`}},
		{"calls without the member function", [][]string{{`{"index":0,"id":"a","name":"f","arguments":"{\"x\":"}`}, {`{"index":0,"arguments":"1}"}`}}, nil, []string{`a f {"x":1}`}},
		{"an empty piece", [][]string{{`{}`, piece("0", "a", "f", `{}`)}, {`{"index":0}`}}, nil, []string{`a f {}`}},
		{"the name in pieces", [][]string{{piece("0", "a", "sh", ``)}, {piece("0", "-", "ell", `{}`)}}, nil, []string{`a shell {}`}},
		{"the index as a text, the id as a number", [][]string{{`{"index":"0","id":7,"function":{"name":"f","arguments":"{\"x\":"}}`}, {`{"index":"0","function":{"arguments":"1}"}}`}}, nil, []string{`7 f {"x":1}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var events []string
			for _, e := range tt.events {
				events = append(events, `{"choices":[{"delta":{"tool_calls":[`+strings.Join(e, ",")+`]}}]}`)
			}
			events = append(events, `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`)
			for _, p := range tt.after {
				events = append(events, `{"choices":[{"delta":{"tool_calls":[`+p+`]},"finish_reason":"tool_calls"}]}`)
			}
			resp, err := client(&answers{all: []answer{{body: sse(append(events, "[DONE]")...)}}}, config.Provider{}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
			must(t, err)
			diffCalls(t, tt.want, resp.Items)
		})
	}
}

// TestOlderCalls has calls that come otherwise than as a list of them, or beside one: each counts.
func TestOlderCalls(t *testing.T) {
	const one, both = `* f {"x":1}`, `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}],"function_call":{"name":"g","arguments":"{}"}},"finish_reason":"stop"}]}`
	for name, events := range map[string][]string{
		"in both members":            {both},
		"function_call":              {`{"choices":[{"delta":{"function_call":{"name":"f","arguments":""}}}]}`, `{"choices":[{"delta":{"function_call":{"arguments":"{\"x\":"}}}]}`, `{"choices":[{"delta":{"function_call":{"arguments":"1}"}},"finish_reason":"function_call"}]}`},
		"one object":                 {`{"choices":[{"delta":{"tool_calls":{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}}}]}`, `{"choices":[{"delta":{"tool_calls":{"function":{"arguments":"1}"}}},"finish_reason":"tool_calls"}]}`},
		"function_call of a message": {`{"choices":[{"message":{"content":null,"function_call":{"name":"f","arguments":"{\"x\":1}"}},"finish_reason":"stop"}]}`},
	} {
		resp, err := client(&answers{all: []answer{{body: sse(events...)}}}, config.Provider{}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := []string{one}
		if name == "in both members" {
			want = append(want, `* g {}`)
		}
		diffCalls(t, want, resp.Items)
	}
}

// diffCalls compares calls, whose ids must differ.
func diffCalls(t *testing.T, want []string, items []protocol.ResponseItem) {
	t.Helper()
	var got []string
	ids := map[string]bool{}
	for i, item := range items {
		c, ok := item.(protocol.FunctionCallItem)
		if !ok {
			continue
		}
		if c.CallID == "" || ids[c.CallID] {
			t.Errorf("the id %q of call %d is empty, or comes twice", c.CallID, i)
		}
		ids[c.CallID] = true
		id := c.CallID
		if n := len(got); n < len(want) && strings.HasPrefix(want[n], "* ") {
			id = "*"
		}
		got = append(got, id+" "+c.Name+" "+c.Arguments)
	}
	diff(t, "", want, got)
}

// TestIDsInTheHistory has servers that count their calls anew in each response.
func TestIDsInTheHistory(t *testing.T) {
	long := strings.Repeat("x", 80)
	history := []protocol.ResponseItem{call("call_0", "f", "{}"), call("call_0_2", "f", "{}"), protocol.CustomToolCallItem{CallID: "c"}, protocol.LocalShellCallItem{CallID: "l"}, call(long, "f", "{}")}
	for wire, stream := range map[config.WireAPI]string{
		config.WireChat: sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_0","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"c","function":{"name":"f","arguments":"{}"}},` +
			`{"index":2,"id":"new","function":{"name":"f","arguments":"{}"}},{"index":3,"id":"` + long + `","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`),
		config.WireResponses: sse(`{"type":"response.output_item.done","item":{"type":"function_call","name":"f","arguments":"{}","call_id":"call_0"}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","name":"f","arguments":"{}","call_id":"c"}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","name":"f","arguments":"{}","call_id":"new"}}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","name":"f","arguments":"{}","call_id":"`+long+`"}}`, `{"type":"response.completed"}`),
	} {
		resp, err := client(&answers{all: []answer{{body: stream}}}, config.Provider{WireAPI: wire}).Stream(t.Context(), &model.Request{Items: history}, func(protocol.EventMsg) {})
		must(t, err)
		diffCalls(t, []string{"call_0_3 f {}", "c_2 f {}", "new f {}", long[:56] + "_2 f {}"}, resp.Items)
	}
}

// TestResponsesParts has servers that leave out events of the Responses API, or send them twice.
func TestResponsesParts(t *testing.T) {
	const (
		message   = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}`
		function  = `{"type":"function_call","id":"f","call_id":"c","name":"f","arguments":"{\"x\":1}"}`
		added     = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"f","arguments":""}}`
		completed = `{"type":"response.completed","response":{"status":"completed"}}`
	)
	done := func(item string) string {
		return `{"type":"response.output_item.done","output_index":0,"item":` + item + `}`
	}
	delta := func(s string) string { return `{"type":"response.output_text.delta","delta":` + s + `}` }
	output := func(items string) string {
		return `{"type":"response.completed","response":{"output":[` + items + `]}}`
	}
	piece := func(s string) string {
		return `{"type":"response.function_call_arguments.delta","item_id":"f","output_index":0,"delta":` + s + `}`
	}
	so, one := []protocol.ResponseItem{text("so")}, []protocol.ResponseItem{call("c", "f", `{"x":1}`)}
	custom := []protocol.ResponseItem{protocol.CustomToolCallItem{CallID: "c", Name: "p", Input: "free"}}
	for name, tt := range map[string]struct {
		events []string
		want   []protocol.ResponseItem
		cut    model.Cut
	}{
		"a message in the end":               {[]string{output(message)}, so, ""},
		"a message in the end and before":    {[]string{delta(`"so"`), done(message), output(message)}, so, ""},
		"deltas alone":                       {[]string{delta(`"s"`), delta(`"o"`), completed}, so, ""},
		"deltas and the end":                 {[]string{delta(`"s"`), delta(`"o"`), output(message)}, so, ""},
		"a text without deltas":              {[]string{`{"type":"response.output_text.done","text":"so"}`, completed}, so, ""},
		"deltas and their text":              {[]string{delta(`"s"`), delta(`"o"`), `{"type":"response.output_text.done","text":"so"}`, completed}, so, ""},
		"a message before deltas":            {[]string{done(message), delta(`"more"`), completed}, []protocol.ResponseItem{text("so"), text("more")}, ""},
		"a call in the end":                  {[]string{output(function)}, one, ""},
		"a call in the end and before":       {[]string{added, done(function), output(function)}, one, ""},
		"a message and a call in the end":    {[]string{output(message + "," + function)}, append(so[:1:1], one...), ""},
		"a call that comes twice":            {[]string{done(function), done(function), completed}, one, ""},
		"a call in arguments.done":           {[]string{added, `{"type":"response.function_call_arguments.done","item_id":"f","output_index":0,"arguments":"{\"x\":1}"}`, completed}, one, ""},
		"a call in arguments.done alone":     {[]string{`{"type":"response.function_call_arguments.done","item_id":"f","call_id":"c","name":"f","arguments":"{\"x\":1}"}`, completed}, one, ""},
		"a call in deltas":                   {[]string{added, piece(`"{\"x\":"`), piece(`"1}"`), completed}, one, ""},
		"a call whose id changes":            {[]string{added, strings.Replace(piece(`"{\"x\":"`), `"f"`, `"g"`, 1), strings.Replace(piece(`"1}"`), `"f"`, `"h"`, 1), completed}, one, ""},
		"two calls whose ids change":         {[]string{added, strings.NewReplacer(`"f"`, `"i"`, `"c"`, `"d"`, `output_index":0`, `output_index":1`).Replace(added), strings.NewReplacer(`"f"`, `"g"`, `output_index":0`, `output_index":1`).Replace(piece(`"{}"`)), strings.Replace(piece(`"{\"x\":1}"`), `"f"`, `"h"`, 1), completed}, append(one[:1:1], call("d", "i", "{}")), ""},
		"two calls at one index":             {[]string{added, strings.NewReplacer(`"f"`, `"i"`, `"c"`, `"d"`).Replace(added), piece(`"{\"x\":1}"`), strings.Replace(piece(`"{}"`), `"f"`, `"i"`, 1), completed}, append(one[:1:1], call("d", "i", "{}")), ""},
		"half a call":                        {[]string{added, piece(`"{\"x\":"`), completed}, nil, ""},
		"a call of a cut response":           {[]string{added, piece(`"{\"x\":1}"`), `{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}`}, nil, "length"},
		"an incomplete response":             {[]string{delta(`"so"`), `{"type":"response.completed","response":{"status":"incomplete","incomplete_details":{}}}`}, so, "without a reason"},
		"a call with all in its beginning":   {[]string{strings.Replace(added, `"arguments":""`, `"arguments":"{\"x\":1}"`, 1), completed}, one, ""},
		"free text":                          {[]string{`{"type":"response.output_item.added","item":{"type":"custom_tool_call","id":"i","call_id":"c","name":"p","input":""}}`, `{"type":"response.custom_tool_call_input.done","item_id":"i","input":"free"}`, completed}, custom, ""},
		"content as a text":                  {[]string{done(`{"type":"message","role":"assistant","content":"so"}`), completed}, so, ""},
		"content as an object":               {[]string{done(`{"type":"message","role":"assistant","content":{"text":"so"}}`), completed}, so, ""},
		"a refusal":                          {[]string{done(`{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"so"}]}`), completed}, so, ""},
		"a text as a part":                   {[]string{`{"type":"response.content_part.done","part":{"type":"output_text","text":"so"}}`, completed}, so, ""},
		"a text and its part":                {[]string{delta(`"so"`), `{"type":"response.output_text.done","text":"so"}`, `{"type":"response.content_part.done","part":{"type":"output_text","text":"so"}}`, completed}, so, ""},
		"deltas as objects":                  {[]string{delta(`{"text":"s"}`), delta(`{"text":"o"}`), completed}, so, ""},
		"deltas and an item without them":    {[]string{delta(`"so"`), done(`{"type":"message","role":"assistant","content":[]}`), completed}, so, ""},
		"a message in its beginning":         {[]string{`{"type":"response.output_item.added","item":` + message + `}`, completed}, so, ""},
		"output_text":                        {[]string{`{"type":"response.completed","response":{"output":[],"output_text":"so"}}`}, so, ""},
		"output_text and a message":          {[]string{done(message), `{"type":"response.completed","response":{"output_text":"so"}}`}, so, ""},
		"one item in the place of a list":    {[]string{`{"type":"response.completed","response":{"output":` + message + `}}`}, so, ""},
		"no member response":                 {[]string{`{"type":"response.completed","status":"completed","output":[` + message + `]}`}, so, ""},
		"a call as an object":                {[]string{done(strings.Replace(function, `"{\"x\":1}"`, `{"x":1}`, 1)), completed}, one, ""},
		"a call whose item has no arguments": {[]string{added, piece(`"{\"x\":1}"`), done(strings.Replace(function, `{\"x\":1}`, "", 1)), completed}, one, ""},
		"a call and [DONE]":                  {[]string{done(function), "[DONE]"}, one, ""},
		"another status of the end":          {[]string{done(message), `{"type":"response.completed","response":{"status":"cancelled"}}`}, so, "cancelled"},
		"a status of before the end":         {[]string{done(message), `{"type":"response.done","response":{"status":"in_progress"}}`}, so, ""},
		"a refusal in deltas":                {[]string{`{"type":"response.refusal.delta","delta":"s"}`, `{"type":"response.refusal.delta","delta":"o"}`, completed}, so, ""},
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := client(&answers{all: []answer{{body: sse(tt.events...)}}}, config.Provider{WireAPI: config.WireResponses}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
			must(t, err)
			diff(t, "", &model.Response{Items: tt.want, Cut: tt.cut}, resp)
		})
	}
}
