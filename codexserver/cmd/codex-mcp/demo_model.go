package main

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// demoModel is the provider of the demo: it answers the requests in this program. An answer
// depends only on its request.
type demoModel struct{}

// RoundTrip implements [http.RoundTripper].
func (demoModel) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil { // else it is no turn
		body, _ = io.ReadAll(r.Body) // it is in memory
		r.Body.Close()
	}
	done := bytes.Count(body, []byte(`"type":"function_call_output"`)) // a text in JSON has no such quotes
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: -1,
		Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body:   io.NopCloser(strings.NewReader(demoAnswer(done))),
	}, nil
}

// demoSteps are what the script says, and the tool that it calls.
var demoSteps = []struct{ text, tool, arguments string }{
	{
		"This is a demo: I am a script. I ask for three things. The first is a new file.",
		"apply_patch", `{"input":"*** Begin Patch\n*** Add File: hello.txt\n+hello\n*** End Patch\n"}`,
	},
	{"The second is a command. If you approve it, it runs.", "shell", `{"command":["mkdir","greetings"]}`},
	{
		"The third is a command to refuse. If you refuse it, it does not run, and I get the refusal as its result.",
		"shell", `{"command":["rm","hello.txt"]}`,
	},
}

// demoAnswer returns what comes after that many steps of the script, on the wire of the Responses API.
func demoAnswer(done int) string {
	quote := func(text string) string {
		quoted, _ := jsontext.AppendQuote(nil, text) // the script is UTF-8
		return string(quoted)
	}
	text, call := "This was a demo: a script asked, not a model.", ""
	if done < len(demoSteps) {
		s := demoSteps[done]
		if runtime.GOOS == "windows" { // both are commands of its shell
			s.arguments = strings.NewReplacer(`["mkdir"`, `["cmd","/c","mkdir"`, `["rm"`,
				`["cmd","/c","del"`).Replace(s.arguments)
		}
		text, call = s.text, demoEvent("output_item.done",
			`"item":{"type":"function_call","call_id":"demo","name":"`+s.tool+`","arguments":`+quote(s.arguments)+`}`)
	}
	return demoEvent("output_item.done",
		`"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":`+quote(text)+`}]}`) +
		call + demoEvent("completed", `"response":{"id":"demo"}`)
}

func demoEvent(name, members string) string {
	return "event: response." + name + "\ndata: {\"type\":\"response." + name + "\"," + members + "}\n\n"
}
