package main

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// demoModel is the provider of the demo: it answers the requests in this program. An answer
// depends only on its request.
type demoModel struct{}

// RoundTrip implements [http.RoundTripper].
func (demoModel) RoundTrip(r *http.Request) (*http.Response, error) {
	var body struct {
		Input []demoItem `json:"input"`
	}
	if r.Body != nil { // else it is no turn
		raw, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err == nil {
			err = json.Unmarshal(raw, &body, jsontext.AllowInvalidUTF8(true))
		}
		if err != nil {
			return nil, err
		}
	}
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: -1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(demoAnswer(body.Input).stream())),
	}, nil
}

// demoItem is an item of a request, such as the result of a tool.
type demoItem struct {
	Type   string `json:"type"`
	Output any    `json:"output"`
}

// demoStep is what the script says, and the tool that it calls; "" calls none.
type demoStep struct {
	text, tool, arguments string
}

// stream returns the step on the wire of the Responses API.
func (s demoStep) stream() string {
	quote := func(text string) string {
		quoted, _ := jsontext.AppendQuote(nil, text) // the script is UTF-8
		return string(quoted)
	}
	items := []string{`{"type":"message","role":"assistant","content":[{"type":"output_text","text":` + quote(s.text) + `}]}`}
	if s.tool != "" {
		items = append(items, `{"type":"function_call","call_id":"demo","name":"`+s.tool+`","arguments":`+quote(s.arguments)+`}`)
	}
	var stream strings.Builder
	for _, item := range items {
		stream.WriteString("event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"item\":" + item + "}\n\n")
	}
	return stream.String() + "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"demo\"}}\n\n"
}

// demoAnswer returns the next step of the script: one for each result of a tool.
func demoAnswer(items []demoItem) demoStep {
	var results []string
	for _, item := range items {
		if item.Type == "function_call_output" {
			text, _ := item.Output.(string)
			results = append(results, text)
		}
	}
	switch len(results) {
	case 0:
		return demoStep{
			text: "This is a demo: I am a script. I ask for three things. The first is a new file.",
			tool: "apply_patch", arguments: `{"input":"*** Begin Patch\n*** Add File: hello.txt\n+hello\n*** End Patch\n"}`,
		}
	case 1:
		return demoStep{text: "The second is a command. If you approve it, it runs.", tool: "shell", arguments: demoCommand(`"mkdir","greetings"`)}
	case 2:
		return demoStep{
			text: "The third is a command to refuse. If you refuse it, it does not run, and I get the refusal as its result.",
			tool: "shell", arguments: demoCommand(`"rm","hello.txt"`),
		}
	}
	return demoStep{text: "This was a demo: a script asked, not a model. What became of it:\n\n" +
		"- hello.txt: " + demoResult(results[0], "added", "not added") +
		"\n- mkdir greetings: " + demoResult(results[1], "ran", "not run") +
		"\n- rm hello.txt: " + demoResult(results[2], "ran", "not run")}
}

// demoCommand returns the arguments of the shell tool.
func demoCommand(words string) string {
	if runtime.GOOS == "windows" { // both are commands of its shell
		words = `"cmd","/c",` + strings.Replace(words, "rm", "del", 1)
	}
	return `{"command":[` + words + `]}`
}

// demoResult describes the result of a tool. Only that of a tool that ran has an exit status.
func demoResult(text, did, not string) string {
	var result struct {
		Metadata struct {
			ExitCode *int `json:"exit_code"`
		} `json:"metadata"`
	}
	if json.Unmarshal([]byte(text), &result) != nil || result.Metadata.ExitCode == nil {
		if _, why, ok := strings.Cut(text, ": "); ok { // "the command was not run: declined"
			text = why
		}
		return not + " (" + text + ")"
	}
	return fmt.Sprintf("%s, exit status %d", did, *result.Metadata.ExitCode)
}
