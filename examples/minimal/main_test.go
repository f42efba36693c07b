package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestServe asks a client that declares that it can be asked, and one that does not.
func TestServe(t *testing.T) {
	for _, able := range []bool{true, false} {
		want, params := "denied", &mcptypes.InitializeRequestParams{ProtocolVersion: mcptypes.ProtocolVersion, ClientInfo: mcptypes.Implementation{Name: "t", Version: "1"}}
		if able {
			want, params.Capabilities.Elicitation = "approved", map[string]json.RawMessage{}
		}
		ctx, stop := context.WithCancel(t.Context())
		ours, theirs := jsonrpc.Pipe()
		ended := make(chan error, 2)
		go func() { ended <- serve(ctx, ours) }()
		mux, asked := new(jsonrpc.Mux), 0
		mcptypes.ElicitationCreate.Handle(mux, func(context.Context, *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
			asked++
			return &mcptypes.ElicitResult{Action: "accept"}, nil
		})
		client := jsonrpc.NewPeer(theirs, mux, nil)
		go func() { ended <- client.Run(ctx) }()
		if _, err := mcptypes.Initialize.Call(ctx, client, params); err != nil {
			t.Error(err)
		}
		if list, err := mcptypes.ToolsList.Call(ctx, client, &mcptypes.ListToolsRequestParams{}); err != nil || list.Tools[0].Name != "launch" {
			t.Errorf("%+v, %v", list, err)
		}
		r, err := mcptypes.ToolsCall.Call(ctx, client, &mcptypes.CallToolRequestParams{Name: "launch"})
		if err != nil || r.Content[0].(*mcptypes.TextContent).Text != want || asked > 0 != able {
			t.Errorf("able %t: %+v, %v, asked %d times", able, r, err, asked)
		}
		stop()
		<-ended
		<-ended
	}
}

// TestLines counts the lines of serve.
func TestLines(t *testing.T) {
	source := must.Get(os.ReadFile("main.go"))(t)
	_, body, _ := bytes.Cut(source, []byte("\nfunc serve("))
	n := -1 // the first is the rest of the line of func
	for line := range bytes.Lines(body) {
		if len(bytes.Trim(line, "\t})\n")) > 0 {
			n++
		}
	}
	if n != 10 {
		t.Errorf("%d lines", n)
	}
}
