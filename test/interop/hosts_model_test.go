package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// hostModel is the model of a host. It answers by script what the host asks of OpenAI's
// Chat Completions or Responses, and of Gemini's API.
type hostModel struct {
	openai *providertest.Server
	gemini *httptest.Server
	// next is the script: what the model says, or the tool it calls, after the results of
	// the calls so far.
	next func(outputs []string) (say string, call *call)

	mu      sync.Mutex
	outputs []string
	over    bool // the model has spoken its last
	faults  []string
}

func newHostModel(next func(outputs []string) (string, *call)) *hostModel {
	m := &hostModel{next: next}
	m.openai = providertest.New(providertest.Turn{Repeat: true, Func: m.turn})
	m.gemini = httptest.NewServer(http.HandlerFunc(m.serveGemini))
	return m
}

func (m *hostModel) close() {
	m.gemini.Close()
	m.openai.Close()
}

// heard returns the results of calls that reached the model, whether the conversation
// ended by the script, and what was wrong.
func (m *hostModel) heard() (outputs []string, over bool, faults []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.outputs), m.over, slices.Clone(m.faults)
}

// answer makes the next step. Hosts write the names of the tools in their own ways. A
// request on the side, for a title for instance, offers none of the tools.
func (m *hostModel) answer(tools, outputs []string) (say, tool string, arguments map[string]any) {
	named := func(name string) string {
		suffix := strings.ReplaceAll(name, "-", "_")
		for _, t := range tools {
			if strings.HasSuffix(strings.ReplaceAll(t, "-", "_"), suffix) {
				return t
			}
		}
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if named("codex-reply") == "" {
		if len(tools) > 0 {
			m.faults = append(m.faults, fmt.Sprintf("the host offers %q", tools))
		}
		return "A title", "", nil
	}
	m.outputs = outputs
	say, call := m.next(outputs)
	if call == nil {
		m.over = true
		return say, "", nil
	}
	return "", named(call.Tool), call.Arguments
}

// turn answers on OpenAI's wires.
func (m *hostModel) turn(r providertest.Request) providertest.Turn {
	var body struct {
		Tools []struct {
			Name     string
			Function named
		}
	}
	_ = json.Unmarshal(r.Body, &body) // a body that is not a request offers nothing
	var tools, outputs []string
	for _, t := range body.Tools {
		tools = append(tools, t.Name+t.Function.Name)
	}
	for _, o := range r.ToolOutputs() {
		outputs = append(outputs, o.Output)
	}
	say, tool, arguments := m.answer(tools, outputs)
	if tool == "" {
		return providertest.Say(say)
	}
	return providertest.Call(providertest.Tool(fmt.Sprint("call_", len(outputs)), tool, arguments))
}

// serveGemini answers generateContent and streamGenerateContent.
func (m *hostModel) serveGemini(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the host has gone
	}
	type part struct {
		FunctionResponse *struct{ Response json.RawMessage }
	}
	var body struct {
		Contents []struct{ Parts []part }
		Tools    []struct{ FunctionDeclarations []named }
	}
	_ = json.Unmarshal(raw, &body) // a body that is not a request offers nothing
	var tools, outputs []string
	for _, t := range body.Tools {
		tools = append(tools, toolList{t.FunctionDeclarations}.names()...)
	}
	for _, c := range body.Contents {
		for _, p := range c.Parts {
			if p.FunctionResponse != nil {
				outputs = append(outputs, geminiOutput(p.FunctionResponse.Response))
			}
		}
	}
	say, tool, arguments := m.answer(tools, outputs)
	said := map[string]any{"text": say}
	if tool != "" {
		said = map[string]any{"functionCall": map[string]any{"name": tool, "args": arguments}}
	}
	answer, err := json.Marshal(map[string]any{
		"candidates":    []any{map[string]any{"content": map[string]any{"role": "model", "parts": []any{said}}, "finishReason": "STOP"}},
		"usageMetadata": map[string]int{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
		"totalTokens":   15, // of countTokens
	})
	if err != nil {
		panic(err) // strings and numbers
	}
	if strings.Contains(r.URL.Path, ":stream") {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", answer)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // fails only when the host has gone
}

// geminiOutput returns the text of a function's response, {"output":…}, or its JSON.
func geminiOutput(raw json.RawMessage) string {
	var r struct{ Output *string }
	if json.Unmarshal(raw, &r) == nil && r.Output != nil {
		return *r.Output
	}
	return string(raw)
}
