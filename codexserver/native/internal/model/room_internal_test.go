package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/slots"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// said is a provider that answers with a stream.
type said string

func (s said) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(s))), Request: r}, nil
}

func stream(s said, wire config.WireAPI, room *slots.Limit) (*Response, error) {
	c := &Client{Provider: config.Provider{BaseURL: "http://x", WireAPI: wire}, HTTP: &http.Client{Transport: s}, Getenv: func(string) string { return "" }, MaxBytes: 64 << 20, Room: room}
	return c.Stream(context.Background(), &Request{Model: "m"}, func(protocol.EventMsg) {})
}

// TestRoom bounds what an answer says, wherever it says it, and what all answers hold together.
func TestRoom(t *testing.T) {
	piece := strings.Repeat("x", 256<<10)
	many := func(event string, n int) said {
		return said(strings.Repeat("data: "+fmt.Sprintf(event, piece)+"\n\n", n))
	}
	const chatEnd, responsesEnd = said("data: [DONE]\n\n"), said("data: {\"type\":\"response.completed\"}\n\n")
	for _, tt := range []struct {
		name, event string
		wire        config.WireAPI
	}{
		{"text", `{"choices":[{"delta":{"content":"%s"}}]}`, ""},
		{"thinking", `{"choices":[{"delta":{"reasoning":"%s"}}]}`, ""},
		{"arguments", `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"%s"}}]}}]}`, ""},
		{"what is not known", `{"choices":[{"delta":{"a":"%[1]s","b":"%[1]s","c":"%[1]s","d":"%[1]s"}}]}`, ""},
		{"text of the Responses API", `{"type":"response.output_text.delta","delta":"%s"}`, config.WireResponses},
		{"arguments of the Responses API", `{"type":"response.function_call_arguments.delta","item_id":"a","delta":"%s"}`, config.WireResponses},
		{"items", `{"type":"response.output_item.done","item":{"type":"reasoning","summary":[],"encrypted_content":"%s"}}`, config.WireResponses},
		{"messages", `{"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"%s"}]}}`, config.WireResponses},
	} {
		t.Run(tt.name, func(t *testing.T) {
			end := chatEnd
			if tt.wire != "" {
				end = responsesEnd
			}
			room := NewRoom()
			_, err := stream(many(tt.event, 16)+end, tt.wire, room)
			if _, limit := errors.AsType[*LimitError](err); !limit || !strings.Contains(err.Error(), "the answer has more than 2097152 bytes") {
				t.Errorf("4 MiB: %v", err)
			}
			if room.Busy() {
				t.Error("room was not given back")
			}
			small := slots.NewLimit(4, "no more than %d")
			if _, err = stream(many(tt.event, 2)+end, tt.wire, small); err == nil || !strings.Contains(err.Error(), "no more than 4") || small.Busy() {
				t.Errorf("half a MiB without room: %v", err)
			}
		})
	}
	text := many(`{"choices":[{"delta":{"content":"%s"}}]}`, 4) + chatEnd
	room := NewRoom()
	var all []*Response
	for len(all) < maxRoom>>20 {
		all = append(all, must.Get(stream(text, "", room))(t))
	}
	if _, err := stream(text, "", room); err == nil || !strings.Contains(err.Error(), "all answers that come at this moment have more than 512 pieces of 64 KiB") {
		t.Errorf("one too many: %v", err)
	}
	if _, err := stream(said("data: {\"choices\":[{\"delta\":{\"content\":\"short\"}}]}\n\n")+chatEnd, "", room); err != nil {
		t.Errorf("a short one: %v", err)
	}
	all[0].Free()
	must.Get(stream(text, "", room))(t).Free()
	if _, err := stream(said("data: "+strings.Repeat("y", 8<<20)), "", room); err == nil || !strings.Contains(err.Error(), "all answers") {
		t.Errorf("a line without an end: %v", err)
	}
	for _, one := range all {
		one.Free()
	}
	if room.Busy() {
		t.Error("room was not given back")
	}
}

// TestLongAnswers reads answers of the greatest size that are made to take long: each would take minutes if the text before each
// tag was read anew.
func TestLongAnswers(t *testing.T) {
	fill := func(part string) string { return strings.Repeat(part, maxAnswer/len(part)) }
	var spans strings.Builder
	spans.WriteString("<think>")
	for n := 1; spans.Len() < maxAnswer; n++ {
		spans.WriteString(strings.Repeat("`", n) + "</think><think>")
	}
	tools := []Tool{{Name: "f"}}
	for name, text := range map[string]string{
		"tags in code":             "<think>```\n" + fill("</think>"),
		"tags in lines of code":    "<think>```\n" + fill("</think>\n"),
		"tags in a span":           "<think>`" + fill("</think>"),
		"thoughts":                 fill("<think></think>"),
		"spans":                    spans.String(),
		"tags that open":           fill("<"),
		"tags that close":          fill("</think> "),
		"blank lines":              "<think>" + fill("\n"),
		"blanks":                   "<think>`" + fill(" ") + "</think>",
		"quotes":                   fill("> "),
		"backticks":                "<think>" + fill("` ") + "</think>",
		"calls in text":            fill("<tool_call>{") + "}",
		"calls in text, in quotes": fill(`<tool_call>{"name":"`) + "}",
	} {
		t.Run(name, func(t *testing.T) {
			answer := Answer(text)
			if len(answer) > len(text) || TextCall(text, tools) != "" {
				t.Errorf("%d of %d bytes", len(answer), len(text))
			}
		})
	}
}
