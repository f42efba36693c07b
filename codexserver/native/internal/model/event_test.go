package model_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

const (
	chatText = `{"choices":[{"index":0,"delta":{"content":"so"}}]}`
	done     = `{"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}}`
)

// TestWholeAnswers has what servers send besides an answer that is whole. None of it counts.
func TestWholeAnswers(t *testing.T) {
	ten := &protocol.TokenUsage{InputTokens: 10, OutputTokens: 2, TotalTokens: 12}
	responses := func(usage string) string {
		return sse(done, `{"type":"response.completed","response":{"usage":`+usage+`}}`)
	}
	for _, tt := range []struct {
		name  string
		wire  config.WireAPI
		body  string
		usage *protocol.TokenUsage
	}{
		{"no empty line at the end", "", sse(chatText) + "data: " + chatDone, nil},
		{"no empty line behind [DONE]", "", sse(chatText) + "data: [DONE]", nil},
		{"no empty line behind the usage", "", sse(chatText, chatDone) + `data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}` + "\n", ten},
		{"half an event behind the end", "", sse(chatText, chatDone) + `data: {"choices":[],"us`, nil},
		{"no empty line, Responses", "responses", sse(done) + `data: {"type":"response.completed"}`, nil},
		{"no empty lines at all", "", "data: " + chatText + "\ndata: " + chatDone + "\ndata: [DONE]\n\n", nil},
		{"numbers with a fraction", "", sse(chatText, chatDone, `{"choices":[],"usage":{"prompt_tokens":10.0,"completion_tokens":2.0,"total_tokens":1.2e1}}`, "[DONE]"), ten},
		{"numbers as texts", "", sse(chatText, chatDone, `{"choices":[],"usage":{"prompt_tokens":"10","completion_tokens":"2","total_tokens":"12"}}`, "[DONE]"), ten},
		{"no sum", "", sse(chatText, chatDone, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2}}`, "[DONE]"), ten},
		{"numbers with a fraction, Responses", "responses", responses(`{"input_tokens":10.0,"output_tokens":"2","total_tokens":12,"input_tokens_details":[],"output_tokens_details":null}`), ten},
		{"the usage as a list", "", sse(chatText, chatDone, `{"choices":[],"usage":[]}`, "[DONE]"), nil},
		{"the usage as a text", "", sse(chatText, chatDone, `{"choices":[],"usage":""}`, "[DONE]"), nil},
		{"the usage as a number, Responses", "responses", responses(`7`), nil},
		{"details as a list", "", sse(chatText, chatDone, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"prompt_tokens_details":[],"completion_tokens_details":"x"}}`, "[DONE]"), ten},
		{"an empty error", "", sse(`{"choices":[{"delta":{"content":"so"}}],"error":{}}`, `{"choices":[{"delta":{},"finish_reason":"stop","error":""}],"error":""}`, `{"choices":[],"error":[]}`), nil},
		{"an empty error, Responses", "responses", sse(`{"type":"response.created","response":{"error":{}},"error":null}`, done, `{"type":"response.completed","response":{"error":""}}`), nil},
		{"the reason as an object", "", sse(chatText, `{"choices":[{"delta":{},"finish_reason":{"type":"stop"}}]}`), nil},
		{"choices as an object", "", sse(chatText, `{"choices":{},"usage":{}}`, chatDone), &protocol.TokenUsage{}},
		{"choices as a text", "", sse(chatText, `{"choices":"","object":7}`, chatDone), nil},
		{"a list of other things as a delta", "", sse(`{"choices":[{"delta":[]}]}`, chatText, chatDone), nil},
		{"calls that are none", "", sse(`{"choices":[{"delta":{"content":"so","tool_calls":{}}}]}`, `{"choices":[{"delta":{"tool_calls":""},"finish_reason":"stop"}]}`), nil},
		{"the message in the place of the delta", "", sse(`{"choices":[{"message":{"role":"assistant","content":"so"},"finish_reason":"stop"}]}`), nil},
		{"the message behind the deltas", "", sse(chatText, `{"choices":[{"delta":{},"message":{"content":"so"},"finish_reason":"stop"}]}`), nil},
		{"content as an object", "", sse(`{"choices":[{"delta":{"content":{"type":"text","text":"so"}}}]}`, chatDone), nil},
		{"a refusal", "", sse(`{"choices":[{"delta":{"content":null,"refusal":"so"}}]}`, chatDone), nil},
		{"blanks around [DONE]", "", sse(chatText, chatDone, " [DONE]  "), nil},
		{"[DONE] in small letters", "", sse(chatText, "[done]"), nil},
		{"events without data", "", "data:\n\n" + sse(chatText) + "data: \n\nevent: x\n\n" + sse(chatDone), nil},
		{"a ping", "", "event: ping\ndata: ping\n\n" + sse(chatText) + ": ping\n\ndata: pong\n\n" + sse(chatDone), nil},
		{"a ping as JSON", "", sse(`{"type":"ping"}`, chatText, `"ping"`, `{"message":"still there"}`, `17`, chatDone), nil},
		{"a ping, Responses", "responses", "event: ping\ndata: {}\n\n" + sse(`{"type":"keepalive","message":"still there"}`, done, `{"type":"response.completed"}`), nil},
		{"the type in the name of the event", "responses", "event: response.output_item.done\ndata: " + strings.Replace(done, `"type":"response.output_item.done",`, "", 1) + "\n\nevent: response.completed\ndata: {}\n\n", nil},
		{"numbers that JSON does not have", "", sse(`{"choices":[{"delta":{"content":"s"},"logprobs":[-Infinity,NaN,{"NaN":"\"-Infinity"}]}],"timings":{"t":nan,"u":-inf}}`, `{"choices":[{"delta":{"content":"o"},"finish_reason":"stop"}],"t":Infinity}`), nil},
		{"a byte-order mark", "", "\ufeff" + sse(chatText, chatDone), nil},
		{"a body that is no stream", "", `{"choices":[{"message":{"content":"so"},"finish_reason":"stop"}]}`, nil},
		{"such a body over lines, without a reason", "", "{\n \"choices\": [\n  {\"message\": {\"content\": \"so\"}}\n ]\n}\n", nil},
		{"an error whose members say nothing", "", sse(`{"choices":[{"delta":{"content":"so"},"error":{"code":0}}],"error":{"message":"","type":"","param":"","code":null}}`, `{"choices":[{"delta":{},"finish_reason":"stop"}],"error":{"code":0,"message":"Success"}}`), nil},
		{"the number zero as an error", "", sse(`{"choices":[{"delta":{"content":"so"}}],"error":0,"errors":[{}]}`, `{"choices":[],"error":"None"}`, chatDone), nil},
		{"an error that says nothing, Responses", "responses", sse(`{"error":{"message":""},"type":"x"}`, done, `{"type":"response.completed","response":{"error":{"code":0,"message":"ok"}}}`), nil},
		{"one choice in the place of the list", "", sse(`{"choices":{"index":0,"delta":{"content":"so"}}}`, `{"choices":{"finish_reason":"stop"}}`), nil},
		{"the delta as a text", "", sse(`{"choices":[{"delta":"so"}]}`, chatDone), nil},
		{"the text of a completion", "", sse(`{"choices":[{"text":"s"}]}`, `{"choices":[{"text":"o","finish_reason":"stop"}]}`), nil},
		{"content as a list of texts", "", sse(`{"choices":[{"delta":{"content":["s","o"]}}]}`, chatDone), nil},
		{"no word for the end in each event", "", sse(`{"choices":[{"delta":{"content":"s"},"finish_reason":"null"}]}`, `{"choices":[{"delta":{"content":"o"},"finish_reason":"None"}]}`, chatDone), nil},
		{"the reason in a list", "", sse(chatText, `{"choices":[{"delta":{},"finish_reason":["stop"]}]}`), nil},
		{"data in data", "", strings.ReplaceAll(sse(chatText, chatDone, "[DONE]"), "data: ", "data: data: "), nil},
		{"blanks in front of lines", "", strings.ReplaceAll(sse(chatText, chatDone), "data:", "  data:"), nil},
		{"no empty line, not even at the end", "", "data: " + chatText + "\ndata: " + chatDone + "\n", nil},
		{"two objects in a line", "", sse(chatText + chatDone), nil},
		{"lines of JSON without fields", "", chatText + "\n" + chatDone + "\n", nil},
		{"[DONE] in quotes", "", sse(chatText, `"[DONE]"`), nil},
		{"[DONE], Responses", "responses", sse(done, "[DONE]"), nil},
		{"deltas and [DONE], Responses", "responses", sse(`{"type":"response.output_text.delta","delta":"so"}`, "[DONE]"), nil},
		{"such a body, Responses", "responses", `{"object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}]}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, status := range []int{200, 201, 203} {
				resp, err := client(&answers{all: []answer{{body: tt.body, status: status}}}, config.Provider{WireAPI: tt.wire}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
				check(t, resp, err, []protocol.ResponseItem{text("so")}, tt.usage, "")
			}
		})
	}
}

// TestBrokenAnswers has ends that may lack a part: the answer does not count.
func TestBrokenAnswers(t *testing.T) {
	for name, tt := range map[string]struct {
		wire config.WireAPI
		body string
	}{
		"no end":                                   {"", sse(chatText)},
		"a last event without the end":             {"", sse(chatText) + "data: " + chatText},
		"half of the last event":                   {"", sse(chatText) + `data: {"choices":[{"delta":{},"finish_reason":"st`},
		"half of [DONE]":                           {"", sse(chatText) + "data: [DON"},
		"a last call without the end, Responses":   {"responses", `data: {"type":"response.output_item.done","item":{"type":"function_call","name":"f","arguments":"{}","call_id":"c"}}`},
		"a word that is no number":                 {"", sse(`{"choices":[{"delta":{"content":"so"}}],"t":NaNo}`, chatDone)},
		"one object and a half":                    {"", sse(chatText + `{"choices":[{"del`)},
		"half a body":                              {"", `{"choices":[{"message":{"content":"so"}`},
		"a part of the answer that cannot be read": {"", sse(`{"choices":[{"delta":{"content":"s`, chatText, chatDone)},
	} {
		resp, err := client(&answers{all: []answer{{body: tt.body}}}, config.Provider{WireAPI: tt.wire}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
		if again := retryable(err); err == nil || !again {
			t.Errorf("%s: %+v, %v", name, resp, err)
		}
	}
}

// TestHalvesOfCharacters has characters that are split between two pieces, as two escapes or as bytes.
func TestHalvesOfCharacters(t *testing.T) {
	stream := func(wire config.WireAPI, pieces []string) (reasoning, text, arguments string) {
		var events []string
		for _, p := range pieces {
			if wire == config.WireResponses {
				events = append(events, `{"type":"response.output_text.delta","delta":"`+p+`"}`)
				continue
			}
			for _, member := range []string{`"reasoning_content":"` + p + `"`, `"content":"` + p + `"`, `"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"` + p + `"}}]`} {
				events = append(events, `{"choices":[{"delta":{`+member+`}}]}`)
			}
		}
		said := ""
		resp, err := client(&answers{all: []answer{{body: sse(append(events, chatDone, `{"type":"response.completed"}`)...)}}}, config.Provider{WireAPI: wire}).Stream(t.Context(), &model.Request{}, func(e protocol.EventMsg) {
			if m, ok := e.(protocol.AgentMessageDelta); ok {
				said += m.Delta
			}
		})
		must(t, err)
		got := contents(resp)
		if !strings.HasPrefix(got.Text, said) {
			t.Errorf("the events have %q of %q", said, got.Text)
		}
		return got.Reasoning, got.Text, strings.TrimPrefix(strings.Join(got.Calls, ""), "f ")
	}
	for _, tt := range []struct {
		pieces []string
		want   string
	}{
		{[]string{`a \ud83d`, `\ude00 b`}, "a 😀 b"},
		{[]string{`\uD83D`, ``, `\uDE00`}, "😀"},
		{[]string{`\ud83d`, `x`}, "\uFFFDx"},
		{[]string{`x`, `\ud83d`}, "x\uFFFD"},
		{[]string{`\\ud83d`, `\\ude00`}, `\ud83d\ude00`},
		{[]string{`\\\ud83d`, `\ude00`}, `\😀`},
		{[]string{"\xf0\x9f", "\x98\x80"}, "😀"},
		{[]string{"\xe2", "\x82", "\xac"}, "€"},
		{[]string{"\xff", "x"}, "\uFFFDx"},
	} {
		reasoning, text, arguments := stream("", tt.pieces)
		_, delta, _ := stream("responses", tt.pieces)
		diff(t, fmt.Sprintf("%q", tt.pieces), []string{tt.want, tt.want, tt.want, tt.want}, []string{reasoning, text, arguments, delta})
	}
}

// TestWordsOfTheEnd has the words with which a response ends. Only a few are those of a whole one.
func TestWordsOfTheEnd(t *testing.T) {
	for words, cut := range map[string]model.Cut{
		"stop STOP tool_calls function_call end_turn END_TURN stop_sequence tool_use eos eos_token COMPLETE TOOL_CALL tool-calls":                          "",
		"length max_tokens MAX_TOKENS model_length max_output_tokens token_limit model_context_window_exceeded":                                            model.CutLength,
		"content_filter content-filter SAFETY PROHIBITED_CONTENT RECITATION BLOCKLIST SPII refusal guardrail_intervened sensitive content_filter:VIOLENCE": model.CutFilter,
		"abort pause_turn MALFORMED_FUNCTION_CALL function_call_filter:MALFORMED_FUNCTION_CALL cancelled time_limit OTHER load stopped":                    "itself",
	} {
		for word := range strings.FieldsSeq(words) {
			resp, err := client(&answers{all: []answer{{body: sse(chatText, `{"choices":[{"delta":{},"finish_reason":"`+word+`"}]}`)}}}, config.Provider{}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
			want := cut
			if cut == "itself" {
				want = model.Cut(word)
			}
			if err != nil || resp.Cut != want {
				t.Errorf("%s: %+v, %v, want %q", word, resp, err, want)
			}
		}
	}
	for _, tail := range []string{"[DONE]", `{"choices":[{"delta":{},"finish_reason":null}]}`} {
		resp, err := client(&answers{all: []answer{{body: sse(chatText, tail, "[DONE]")}}}, config.Provider{}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
		if err != nil || resp.Cut != "" {
			t.Errorf("no word before %s: %+v, %v", tail, resp, err)
		}
	}
}

// TestRefusalsInAnswers has refusals of providers in all their shapes, with status 200 and others. The
// provider's words reach the user. again says that another attempt may help.
func TestRefusalsInAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		status     int
		again      bool
		want       []string
	}{
		{"JSON", `{"error":{"message":"the account is empty","code":402}}`, 200, false, nil},
		{"JSON over lines", "{\n \"error\": {\n  \"message\": \"the account is empty\"\n }\n}", 200, true, nil},
		{"a list", `[{"error":{"code":503,"message":"the account is empty"}}]`, 200, true, nil},
		{"errors", `{"success":false,"errors":[{"code":1,"message":"the account is empty"}],"result":null}`, 200, true, nil},
		{"an error as a text", `{"error":"the account is empty"}`, 200, true, nil},
		{"a detail", `{"detail":"the account is empty"}`, 200, true, nil},
		{"a list of details", `{"detail":[{"loc":["body"],"msg":"the account is empty","type":"x"}]}`, 200, true, nil},
		{"a problem", `{"type":"about:blank","title":"No","detail":"the account is empty","status":403}`, 200, true, nil},
		{"plain text", "the account is empty", 200, true, nil},
		{"a page", "<!DOCTYPE html><html><head><title>\n the account is\nempty </title></head><body>x</body></html>", 200, false, []string{"HTML page", "login page of a proxy"}},
		{"a page with status 403", "<html><head><title>the account is empty</title></head></html>", 403, false, []string{"HTML page", "403"}},
		{"a page with status 502", "<html><title>the account is empty</title></html>", 502, true, []string{"HTML page", "502"}},
		{"an object in the stream", sse(`{"object":"error","message":"the account is empty","type":"BadRequestError","code":400}`), 200, false, nil},
		{"an event named error", "event: error\ndata: {\"message\":\"the account is empty\"}\n\n", 200, true, nil},
		{"an event named error, as a text", "event: error\ndata: the account is empty\n\n", 200, true, nil},
		{"an error without a type", "event: response.created\ndata: {\"type\":\"response.created\"}\n\n" + sse(`{"error":{"message":"the account is empty","code":"500"}}`), 200, true, nil},
		{"an error of the choice", sse(`{"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"the account is empty"}}]}`), 200, true, nil},
		{"an event response.error", sse(`{"type":"response.error","error":{"message":"the account is empty","code":"server_error"}}`), 200, true, nil},
		{"an error of Anthropic's", sse(`{"type":"error","error":{"type":"overloaded_error","message":"the account is empty"}}`), 200, true, nil},
		{"base_resp", sse(`{"choices":null,"base_resp":{"status_code":1008,"status_msg":"the account is empty"}}`), 200, true, nil},
		{"a message before the end of the stream", sse(`{"message":"the account is empty"}`), 200, true, nil},
		{"a list in the stream", sse(`[{"error":{"message":"the account is empty"}}]`), 200, true, nil},
		{"a line behind the events", sse(`{"type":"response.created"}`) + "the account is empty", 200, true, nil},
		{"a fault", sse(`{"fault":{"faultstring":"the account is empty","detail":{"errorcode":"x"}}}`), 200, true, nil},
		{"a head with words", sse(`{"header":{"code":10013,"message":"the account is empty","sid":"x"}}`), 200, true, nil},
		{"a member of any name", sse(`{"ok":false,"why":{"text":"the account is empty"}}`), 200, true, nil},
		{"a message that is an object", `{"error":{"message":{"detail":"the account is empty"}}}`, 200, true, nil},
		{"a message of the choice", sse(`{"choices":[{"delta":{},"finish_reason":"error","message":"the account is empty"}]}`), 200, true, nil},
		{"an error of a completed response", sse(`{"type":"response.completed","response":{"status":"failed","error":{"message":"the account is empty"},"output":[]}}`), 200, true, nil},
		{"XML", "<?xml version='1.0'?><Error><Code>X</Code><Message>the account is empty</Message></Error>", 200, false, nil},
		{"XML with status 403", "<Error><Message>the account\nis empty</Message></Error>", 403, false, []string{"403"}},
		{"a page without a title", "<html><head><style>x</style><script>y z</script></head><body><h1>the account</h1> is empty</body></html>", 200, false, []string{"HTML page"}},
		{"an error as a field", "error: {\"message\":\"the account is empty\"}\n\n", 200, true, nil},
		{"what a gateway was told", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"the account is empty"}}}`, 200, false, []string{"Provider returned error"}},
		{"what it was told, with status 503", `{"error":{"message":"Provider returned error","metadata":{"raw":"the account is empty"}}}`, 503, true, []string{"Provider returned error"}},
		{"Gemini's list, with status 500", `[{"error":{"code":500,"message":"the account is empty","status":"INTERNAL"}}]`, 500, true, nil},
	} {
		for _, wire := range []config.WireAPI{config.WireChat, config.WireResponses} {
			_, err := client(&answers{all: []answer{{body: tt.body, status: tt.status}}}, config.Provider{WireAPI: wire}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
			if err == nil {
				t.Errorf("%s, %s: no error", tt.name, wire)
				continue
			}
			for _, words := range append(tt.want, "the account is empty") {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%s, %s: %v lacks %q", tt.name, wire, err, words)
				}
			}
			if again := retryable(err); again != tt.again {
				t.Errorf("%s, %s: again is %t: %v", tt.name, wire, again, err)
			}
		}
	}
}

// TestAskedWaits has how providers ask to wait. Each answer comes once; the next request is answered.
func TestAskedWaits(t *testing.T) {
	message := func(words string) string { return `{"error":{"message":"` + words + `"}}` }
	limits := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	for _, tt := range []struct {
		name, body string
		header     http.Header
		want       time.Duration
	}{
		{"Gemini's words", message("You exceeded your quota. Please retry in 4.25s."), nil, 4250 * time.Millisecond},
		{"Gemini's detail", `[{"error":{"code":429,"message":"no","details":[{"@type":"type.googleapis.com/google.rpc.Help"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17s"}]}}]`, nil, 17 * time.Second},
		{"Azure's words", message("The limit is exceeded. Please retry after 6 seconds."), nil, 6 * time.Second},
		{"Azure's words for one", message("Please retry after 1 second."), nil, time.Second},
		{"Groq's words", message("Rate limit reached. Please try again in 1m2.5s. Visit the console"), nil, 62500 * time.Millisecond},
		{"Groq's words for less", message("Please try again in 720ms."), nil, 720 * time.Millisecond},
		{"minutes and seconds", message("Try again in 1 minute and 5 seconds"), nil, 65 * time.Second},
		{"to wait", message("Too fast: please wait for 9 seconds before the next one"), nil, 9 * time.Second},
		{"a member", `{"error":{"message":"no","retry_after":8}}`, nil, 8 * time.Second},
		{"a member with milliseconds", `{"error":{"message":"no","retry_after_ms":2500}}`, nil, 2500 * time.Millisecond},
		{"a member with seconds", `{"error":{"message":"no","retryAfterSeconds":8}}`, nil, 8 * time.Second},
		{"a member with parts", `{"error":{"details":[{"retryDelay":{"seconds":"7","nanos":0}}]}}`, nil, 7 * time.Second},
		{"headers that a gateway got", `{"error":{"message":"no","metadata":{"headers":{"X-RateLimit-Limit":"20","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"946684811000"}}}}`, nil, 11 * time.Second},
		{"the end of a quota", message("You have exhausted your capacity. Your quota will reset after 9s."), nil, 9 * time.Second},
		{"a throttle", message("Request was throttled. Expected available in 31 seconds."), nil, 31 * time.Second},
		{"a clock", message("Too many requests, retry in 00:01:02"), nil, 62 * time.Second},
		{"a limit without a time", message("The limit of 60 requests resets every 60 seconds"), nil, 500 * time.Millisecond},
		{"milliseconds in a header", "", limits("Retry-After-Ms", "2500"), 2500 * time.Millisecond},
		{"a header before the words", message("Please retry in 50s."), limits("Retry-After", "2"), 2 * time.Second},
		{"the end of a limit that is used up", "", limits("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1m1s", "X-Ratelimit-Remaining-Tokens", "9", "X-Ratelimit-Reset-Tokens", "90s"), 61 * time.Second},
		{"of tokens", "", limits("X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "7.66s"), 7660 * time.Millisecond},
		{"a time in milliseconds", "", limits("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "946684811000"), 11 * time.Second},
		{"a limit in another header", "", limits("Ratelimitbysize-Remaining", "0", "Ratelimitbysize-Reset", "12"), 12 * time.Second},
		{"a limit that has a name", "", limits("X-Ratelimit-Remaining-Tokens-Minute", "0", "X-Ratelimit-Reset-Tokens-Minute", "12.5"), 12500 * time.Millisecond},
		{"a date", "", limits("Anthropic-Ratelimit-Requests-Remaining", "0", "Anthropic-Ratelimit-Requests-Reset", "2000-01-01T00:00:12Z"), 12 * time.Second},
		{"the draft in one header", "", limits("Ratelimit", "limit=10, remaining=0, reset=12"), 12 * time.Second},
		{"a newer draft", "", limits("Ratelimit", `"default";r=0;t=12`), 12 * time.Second},
		{"seconds of the draft", "", limits("Ratelimit-Remaining", "0", "Ratelimit-Reset", "12"), 12 * time.Second},
		{"hours", message("Please try again in 5h3m."), nil, 500 * time.Millisecond},
		{"another number", message("Please retry. The limit is 60 requests, wait."), nil, 500 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{all: []answer{{status: 429, body: tt.body, header: tt.header}, {body: sse(chatDone)}}}
				if _, err := persist(t.Context(), client(a, config.Provider{}), func(time.Duration, string) {}); err != nil || len(a.times) != 2 {
					t.Fatalf("%d requests, %v", len(a.times), err)
				}
				if wait := a.times[1].Sub(a.times[0]); wait < tt.want*9/10 || wait > tt.want*11/10 {
					t.Errorf("waited %v, want %v", wait, tt.want)
				}
			})
		})
	}
}

// TestFullContexts has the words of a provider for a request that is too long, and words about another limit.
func TestFullContexts(t *testing.T) {
	for words, full := range map[string]bool{
		"This model's maximum prompt length is 4096 but the request contains 5000 tokens.": true,
		"Your request exceeded model token limit: 8192 (requested: 9000)":                  true,
		"Prompt exceeds max length": true,
		"The input (5000 tokens) is longer than the model's context length (4096 tokens).":        true,
		"The prompt (total length 7000) is too long to fit into the model (context length 6000).": true,
		"The decoder prompt (length 7000) is longer than the maximum model length of 6000.":       true,
		"Range of input length should be [1, 6000]":                                               true,
		"prompt token count of 7000 exceeds the limit of 6000":                                    true,
		"Input is too long for requested model.":                                                  true,
		"`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens":         true,
		"`inputs` must have less than 4096 tokens. Given: 5000":                                   true,
		"too many tokens: the prompt cannot exceed 6000, received 7000":                           true,
		"Please reduce the length of the messages or completion. Length is 7000, the limit 6000":  true,
		"The conversation has 7000 tokens, more than the window of 6000":                          true,
		"输入 Prompt 超长": true,
		"输入长度超过最大长度限制": true,
		"上下文长度超出模型限制":  true,
		"The sum of prompt length (9000), query length (0), max_tokens (512) should not exceed max_num_tokens (8192)":                                                              true,
		"Total tokens of image and text exceed max message tokens.":                                                                                                                true,
		"Request payload size exceeds the limit: 20971520 bytes.":                                                                                                                  true,
		"You passed 9001 input tokens and requested 0 output tokens. However, the model's context length is only 9000 tokens, resulting in a maximum input length of 9000 tokens.": true,
		"total message size 10176584 exceeds limit 2097152":                                                                                                                        true,
		"the prompt is longer than the model can handle":                                                                                                                           true,
		"Prompt size exceeds what the model takes":                                                                                                                                 true,
		"Token limit exceeded":                                 true,
		"the max input characters is 4800":                     true,
		"Context size has been exceeded.":                      true,
		"input prompt is too big compared to KV size":          true,
		"the prompt (9000 tokens) does not fit into the model": true,
		"prompt tokens 9000 > max 8192":                        true,
		"The text you sent is too long (9000 tokens).":         true,

		"Your monthly token limit is exceeded": false,
		"Processing the prompt took too long":  false,

		"max_tokens is too large: 9000. This model supports at most 8192 completion tokens.":        false,
		"max_tokens must be at least 1, got -186.":                                                  false,
		"Invalid 'tools': array too long. Expected an array with maximum length 128.":               false,
		"Invalid 'messages[2].tool_calls[0].id': string too long. Expected a maximum length of 40.": false,
		"thinking.budget_tokens must be less than the limit of the request":                         false,
		"Rate limit reached: 6000 input tokens per minute, requested more than that":                false,
		"You exceeded your quota of input tokens":                                                   false,
		"messages.0.content.1.image: image exceeds the maximum size of 5 MB":                        false,
		"context deadline exceeded":                                                                 false,
		"The request timed out: it exceeded the time limit":                                         false,
		"temperature must be less than 2":                                                           false,
		"messages: at least one message is required":                                                false,
		"Unsupported value: 'messages[0].role' does not support 'developer' with this model.":       false,
		"Invalid prompt: your prompt was flagged as potentially violating our usage policy.":        false,
		"This model supports at most 8 pictures in a request":                                       false,
	} {
		for _, status := range []int{400, 422, 500, 200} {
			_, err := client(&answers{all: []answer{{status: status, body: `{"error":{"message":"` + words + `","type":"invalid_request_error"}}`}}}, config.Provider{}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
			if errors.Is(err, model.ErrContextWindow) != full {
				t.Errorf("%s, with status %d: %v", words, status, err)
			}
		}
	}
	_, err := client(&answers{all: []answer{{status: 413, body: "Request Entity Too Large"}}}, config.Provider{}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {})
	if !errors.Is(err, model.ErrContextWindow) {
		t.Errorf("status 413: %v", err)
	}
}
