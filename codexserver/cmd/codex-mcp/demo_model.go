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
		Input []struct {
			Type   string `json:"type"`
			Output any    `json:"output"`
		} `json:"input"`
	}
	if r.Body != nil { // else it is no turn
		defer r.Body.Close()
		if err := json.UnmarshalRead(r.Body, &body, jsontext.AllowInvalidUTF8(true)); err != nil {
			return nil, err
		}
	}
	var results []string
	for _, item := range body.Input {
		if item.Type == "function_call_output" {
			text, _ := item.Output.(string)
			results = append(results, text)
		}
	}
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: -1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(demoAnswer(results))),
	}, nil
}

// demoSteps are what the script says, the tool that it calls, and what is reported of it.
var demoSteps = []struct{ text, tool, arguments, what, did, not string }{
	{
		"This is a demo: I am a script. I ask for three things. The first is a new file.",
		"apply_patch", `{"input":"*** Begin Patch\n*** Add File: hello.txt\n+hello\n*** End Patch\n"}`, "hello.txt", "added", "not added",
	},
	{"The second is a command. If you approve it, it runs.", "shell", `{"command":["mkdir","greetings"]}`, "mkdir greetings", "ran", "not run"},
	{
		"The third is a command to refuse. If you refuse it, it does not run, and I get the refusal as its result.",
		"shell", `{"command":["rm","hello.txt"]}`, "rm hello.txt", "ran", "not run",
	},
}

// demoAnswer returns the next step of the script, one for each result of a tool, on the wire of the
// Responses API.
func demoAnswer(results []string) string {
	quote := func(text string) string {
		quoted, _ := jsontext.AppendQuote(nil, text) // the script is UTF-8
		return string(quoted)
	}
	text, call := "This was a demo: a script asked, not a model. What became of it:\n", ""
	if len(results) < len(demoSteps) {
		s := demoSteps[len(results)]
		if runtime.GOOS == "windows" { // both are commands of its shell
			s.arguments = strings.NewReplacer(`["mkdir"`, `["cmd","/c","mkdir"`, `["rm"`, `["cmd","/c","del"`).Replace(s.arguments)
		}
		text, call = s.text, demoEvent("output_item.done", `"item":{"type":"function_call","call_id":"demo","name":"`+s.tool+`","arguments":`+quote(s.arguments)+`}`)
	} else {
		for i, s := range demoSteps {
			text += "\n- " + s.what + ": " + demoResult(results[i], s.did, s.not)
		}
	}
	return demoEvent("output_item.done", `"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":`+quote(text)+`}]}`) +
		call + demoEvent("completed", `"response":{"id":"demo"}`)
}

func demoEvent(name, members string) string {
	return "event: response." + name + "\ndata: {\"type\":\"response." + name + "\"," + members + "}\n\n"
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
