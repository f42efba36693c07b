//go:build models && unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the model of an upstream does in its first answer: it speaks, and calls two tools.
const (
	wireSays = "I make a file."
	wireList = "list"
	wireKey  = "key-of-the-user"
)

var wireRun = map[string]any{"command": []string{"sh", "-c", "echo real > made.txt; cat made.txt"}}

// upstream speaks the wire of a provider. It refuses what the provider refuses.
type upstream interface {
	// check returns the results of tools in the request, and what is wrong with it.
	check(r *http.Request, body []byte) (results []string, wrong string)
	// calls writes the first answer, says the last one.
	calls(w io.Writer)
	says(w io.Writer, text string)
}

// TestModelsWires runs codex-mcp behind Portkey's gateway with the configurations of docs/use/models.md
// for Anthropic and Gemini, and upstreams that speak their wires.
func TestModelsWires(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/use/models.md")
	if err != nil {
		t.Fatal(err)
	}
	gateway := startGateway(t)
	for _, tt := range []struct {
		name, path string // of the custom host
		upstream
	}{
		{"anthropic", "/v1", anthropicWire{}},
		{"google", "", geminiWire{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return // the gateway has gone
				}
				results, wrong := tt.check(r, body)
				switch {
				case wrong != "":
					t.Errorf("%s %s: %s\n%s", r.Method, r.URL, wrong, body)
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusBadRequest)
					fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, wrong)
				case len(results) == 0:
					tt.calls(w)
				case len(results) != 2 || !strings.Contains(results[0], "real") || !strings.Contains(results[1], "made.txt"):
					t.Errorf("the results are %q", results)
					fallthrough
				default:
					tt.says(w, usual)
				}
			}))
			t.Cleanup(server.Close)
			_, config, _ := strings.Cut(string(doc), "<!-- through: "+tt.name+" -->\n```toml\n")
			config, _, ok := strings.Cut(config, "```")
			config, provider, ok2 := strings.Cut(config, "\n[model_providers.")
			if !ok || !ok2 {
				t.Fatal("docs/use/models.md has no such configuration")
			}
			provider = strings.NewReplacer("http://localhost:8787", gateway.url, "http_headers = { ", fmt.Sprintf("http_headers = { x-portkey-custom-host = %q, ", server.URL+tt.path)).Replace(provider)
			variable := map[string]string{"anthropic": "ANTHROPIC_API_KEY", "google": "GEMINI_API_KEY"}[tt.name]
			c := begin(t, config+"show_raw_agent_reasoning = true\napproval_policy = \"untrusted\"\nsandbox_mode = \"workspace-write\"\n[model_providers."+provider, variable+"="+wireKey)
			c.ask("codex", "make a file", "")
			question := c.expect(map[string]any{"method": "elicitation/create"}, c.seen)
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"action":"accept","content":{}}}`, question["id"]))
			usage := c.completes().Values.Usage.Turn
			if text, err := os.ReadFile(filepath.Join(c.cwd, "made.txt")); string(text) != "real\n" {
				t.Errorf("the file has %q, %v", text, err)
			}
			if n := len(c.eventsOf("agent_reasoning_raw_content")); n > 0 {
				t.Errorf("%d events have reasoning, which is the signature", n)
			}
			if usage.Input == 0 || usage.Output == 0 || c.events("agent_message", wireSays) != 1 {
				t.Errorf("the usage is %+v, and %d messages are the model's first", usage, c.events("agent_message", wireSays))
			}
		})
	}
}

// anthropicWire is Anthropic's Messages API.
type anthropicWire struct{}

func (anthropicWire) check(r *http.Request, body []byte) (results []string, wrong string) {
	var q struct {
		MaxTokens int  `json:"max_tokens"`
		Stream    bool `json:"stream"`
		System    any  `json:"system"`
		Tools     []struct {
			Name   string `json:"name"`
			Schema struct {
				Type string `json:"type"`
			} `json:"input_schema"`
		} `json:"tools"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err.Error()
	}
	if r.URL.Path != "/v1/messages" || r.Header.Get("x-api-key") != wireKey || r.Header.Get("anthropic-version") == "" {
		return nil, fmt.Sprintf("the path or the headers %v", r.Header)
	}
	if q.MaxTokens < 1 || !q.Stream || q.System == nil || len(q.Tools) == 0 || len(q.Messages) == 0 || q.Messages[0].Role != "user" {
		return nil, "max_tokens, stream, system, tools, and a message of the user: Field required"
	}
	for _, tool := range q.Tools {
		if tool.Name == "" || tool.Schema.Type != "object" {
			return nil, "tools: a name and an input_schema: Field required"
		}
	}
	var open []string // calls without results
	for i, m := range q.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return nil, "messages: unexpected role " + m.Role
		}
		if m.Role == "assistant" && len(open) > 0 {
			return nil, fmt.Sprintf("tool_use ids without tool_result: %v", open)
		}
		var blocks []struct {
			Type      string          `json:"type"`
			ID        string          `json:"id"`
			ToolUseID string          `json:"tool_use_id"`
			Text      *string         `json:"text"`
			Content   json.RawMessage `json:"content"`
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			continue // a text
		}
		for _, b := range blocks {
			switch b.Type {
			case "tool_use":
				open = append(open, b.ID)
			case "tool_result":
				at := slices.Index(open, b.ToolUseID)
				if at < 0 {
					return nil, "unexpected tool_use_id " + b.ToolUseID
				}
				open = slices.Delete(open, at, at+1)
				results = append(results, string(b.Content))
			case "text":
				if b.Text == nil || *b.Text == "" {
					return nil, fmt.Sprintf("messages.%d: text content blocks must be non-empty", i)
				}
			}
		}
	}
	if len(open) > 0 {
		return nil, fmt.Sprintf("tool_use ids without tool_result: %v", open)
	}
	return results, ""
}

func anthropicEvents(w io.Writer, events ...string) {
	header(w, "text/event-stream")
	for _, e := range append([]string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"usage":{"input_tokens":25,"output_tokens":1}}}`,
		`{"type":"ping"}`,
	}, append(events, `{"type":"message_stop"}`)...) {
		var named struct{ Type string }
		_ = json.Unmarshal([]byte(e), &named) // they are written here
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", named.Type, e)
	}
}

func (anthropicWire) calls(w io.Writer) {
	run, _ := json.Marshal(wireRun) // strings
	half := len(run) / 2
	anthropicEvents(w,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+wireSays[:5]+`"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+wireSays[5:]+`"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"shell","input":{}}}`,
		fmt.Sprintf(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":%q}}`, run[:half]),
		fmt.Sprintf(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":%q}}`, run[half:]),
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_2","name":"`+wireList+`","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\".\"}"}}`,
		`{"type":"content_block_stop","index":2}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":60}}`)
}

func (anthropicWire) says(w io.Writer, text string) {
	anthropicEvents(w,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, text),
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":12}}`)
}

func header(w io.Writer, kind string) {
	w.(http.ResponseWriter).Header().Set("Content-Type", kind)
}

// geminiWire is Google's Gemini API, which streams a list.
type geminiWire struct{}

const geminiSignature = "c2lnbmF0dXJl"

func (geminiWire) check(r *http.Request, body []byte) (results []string, wrong string) {
	var q struct {
		System   any `json:"systemInstruction"`
		Contents []struct {
			Role  string `json:"role"`
			Parts []struct {
				Text             *string         `json:"text"`
				ThoughtSignature string          `json:"thoughtSignature"`
				FunctionCall     *struct{}       `json:"functionCall"`
				FunctionResponse json.RawMessage `json:"functionResponse"`
			} `json:"parts"`
		} `json:"contents"`
		Tools []struct {
			Functions []struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err.Error()
	}
	if !strings.HasSuffix(r.URL.Path, "/models/gemini-3-pro-preview:streamGenerateContent") || r.URL.Query().Get("key") != wireKey {
		return nil, "the path or the key"
	}
	if q.System == nil || len(q.Tools) == 0 || len(q.Contents) == 0 || q.Contents[0].Role != "user" {
		return nil, "systemInstruction, tools, and a content of the user"
	}
	for _, f := range q.Tools[0].Functions {
		for _, unknown := range []string{`"additionalProperties"`, `"$schema"`, `"strict"`} {
			if strings.Contains(string(f.Parameters), unknown) {
				return nil, fmt.Sprintf("%s: Unknown name %s", f.Name, unknown)
			}
		}
	}
	open := 0 // calls of the content before
	for _, content := range q.Contents {
		calls, answers := 0, 0
		for _, p := range content.Parts {
			switch {
			case p.FunctionCall != nil:
				if calls++; calls == 1 && p.ThoughtSignature != geminiSignature {
					return nil, "Function call is missing a thought_signature in functionCall parts."
				}
			case len(p.FunctionResponse) > 0:
				answers++
				results = append(results, string(p.FunctionResponse))
			}
		}
		if answers != open {
			return nil, "the number of function response parts is not that of the function call parts"
		}
		open = calls
	}
	if open > 0 {
		return nil, "a function call without a response"
	}
	return results, ""
}

func geminiChunks(w io.Writer, chunks ...string) {
	header(w, "application/json; charset=UTF-8")
	_, _ = io.WriteString(w, "["+strings.Join(chunks, "\n,\r\n")+"\n]") // fails only when the gateway has gone
}

func (geminiWire) calls(w io.Writer) {
	run, _ := json.Marshal(wireRun) // strings
	geminiChunks(w,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"`+wireSays+`"}]},"index":0}],"usageMetadata":{"promptTokenCount":25,"totalTokenCount":25},"modelVersion":"gemini-3-pro-preview"}`,
		fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"shell","args":%s},"thoughtSignature":%q},{"functionCall":{"name":%q,"args":{"path":"."}}}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":25,"candidatesTokenCount":60,"totalTokenCount":85},"modelVersion":"gemini-3-pro-preview"}`,
			run, geminiSignature, wireList))
}

func (geminiWire) says(w io.Writer, text string) {
	geminiChunks(w, fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"text":%q}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":90,"candidatesTokenCount":12,"totalTokenCount":102},"modelVersion":"gemini-3-pro-preview"}`, text))
}
