package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/examples/internal/exampletest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestServe asks a client that declares that it can be asked, and one that does not.
func TestServe(t *testing.T) {
	for able, want := range map[bool]string{true: "approved", false: "denied"} {
		asked := 0
		client := exampletest.Peer(t, serve, able, func(string) (mcptypes.ElicitResultAction, error) {
			asked++
			return "accept", nil
		})
		if list, err := mcptypes.ToolsList.Call(t.Context(), client, &mcptypes.ListToolsRequestParams{}); err != nil || list.Tools[0].Name != "launch" {
			t.Errorf("%+v, %v", list, err)
		}
		r, err := mcptypes.ToolsCall.Call(t.Context(), client, &mcptypes.CallToolRequestParams{Name: "launch"})
		if err != nil || r.Content[0].(*mcptypes.TextContent).Text != want || asked > 0 != able {
			t.Errorf("able %t: %+v, %v, asked %d times", able, r, err, asked)
		}
	}
}

// TestLines counts the lines of the program, but for its comment and the closing brackets.
func TestLines(t *testing.T) {
	source := must.Get(os.ReadFile("main.go"))(t)
	_, program, _ := bytes.Cut(source, []byte("\npackage main\n"))
	n := 1
	for line := range bytes.Lines(program) {
		if len(bytes.Trim(line, "\t,})\n")) > 0 {
			n++
		}
	}
	if n > 20 {
		t.Errorf("%d lines", n)
	}
}
