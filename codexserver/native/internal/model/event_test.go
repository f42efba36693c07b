package model_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const chatText = `{"choices":[{"index":0,"delta":{"content":"so"}}]}`

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
		must.OK(t, err)
		got := contents(t, resp, "")
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
		must.Equal(t, fmt.Sprintf("%q", tt.pieces), []string{tt.want, tt.want, tt.want, tt.want}, []string{reasoning, text, arguments, delta})
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
		{"milliseconds in a header of Azure", message("Please retry in 50s."), limits("X-Ms-Retry-After-Ms", "1500"), 1500 * time.Millisecond},
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
		{"almost as long as may be", message("try again in 119s"), nil, 119 * time.Second},
		{"longer", message("try again in 3 minutes"), nil, 2 * time.Minute},
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

// TestRateLimits has rate limits with other statuses than 429: another attempt is worth it, in the same form, and so is another
// provider. Other refusals with these statuses are not.
func TestRateLimits(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		often  bool
	}{
		{400, `{"error":{"message":"Rate limit reached for the model, content and tools. Please try again in 3s."}}`, true},
		{400, `{"message":"ThrottlingException: Too many tokens, please wait before trying again."}`, true},
		{400, `{"error":{"code":"rate_limit_exceeded","message":"no"}}`, true},
		{400, `{"error":{"message":"litellm.RateLimitError: no"}}`, true},
		{403, `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`, true},
		{403, `{"error":{"errors":[{"reason":"rateLimitExceeded"}],"message":"Rate Limit Exceeded"}}`, true},
		{400, `[{"error":{"code":400,"message":"no","status":"RESOURCE_EXHAUSTED"}}]`, true},
		{403, `{"code":"Throttling.RateQuota","message":"Requests rate limit exceeded"}`, true},
		{403, `{"error":{"message":"Your key may not use this model"}}`, false},
		{400, `{"error":{"message":"content must be a text"}}`, false},
		{404, `{"error":{"message":"no rate limit page"}}`, false},
		{400, `{"error":{"message":"content must be a text, and this is none: [` + strings.Repeat("x ", 100) + `add a rate limit]"}}`, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &answers{all: []answer{{status: tt.status, body: tt.body}, {body: sse(chatDone)}}}
			c := client(a, config.Provider{})
			req := &model.Request{Items: []protocol.ResponseItem{call("c", "f", "{}"), output("c", "o")}}
			_, err := c.Stream(t.Context(), req, func(protocol.EventMsg) {})
			said, _ := errors.AsType[*model.ProviderError](err)
			if often := said != nil && said.Again && said.Elsewhere && len(a.bodies) == 1; often != tt.often {
				t.Errorf("%d %s: %d requests, %v", tt.status, tt.body, len(a.bodies), err)
			}
		})
	}
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
		resp := send(t, client(&answers{all: []answer{{body: stream}}}, config.Provider{WireAPI: wire}), &model.Request{Items: history})
		want := "call_0_3 c_2 new " + "2_" + long
		must.Equal(t, string(wire), want, contents(t, resp, want).IDs)
	}
}

// TestFullContexts has the words of providers for a request that is too long, and behind an empty line words about
// another limit.
func TestFullContexts(t *testing.T) {
	file := must.Get(os.ReadFile("testdata/contexts.txt"))(t)
	full := true
	for words := range strings.Lines(string(file)) {
		if words = strings.TrimSpace(words); words == "" {
			full = false
			continue
		}
		for _, status := range []int{400, 422, 500, 200} {
			a := &answers{all: []answer{{status: status, body: `{"error":{"message":"` + words + `","type":"invalid_request_error"}}`}}}
			if _, err := client(a, config.Provider{}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {}); errors.Is(err, model.ErrContextWindow) != full {
				t.Errorf("%s, with status %d: %v", words, status, err)
			}
		}
	}
	a := &answers{all: []answer{{status: 413, body: "Request Entity Too Large"}}}
	if _, err := client(a, config.Provider{}).Stream(t.Context(), &model.Request{}, func(protocol.EventMsg) {}); full || !errors.Is(err, model.ErrContextWindow) {
		t.Errorf("status 413: %v", err)
	}
}
