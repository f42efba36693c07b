package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

func TestNotes(t *testing.T) {
	able := mcptypes.ClientCapabilities{Elicitation: map[string]json.RawMessage{}}
	for _, tt := range []struct {
		name         string
		capabilities mcptypes.ClientCapabilities
		answer       mcptypes.ElicitResultAction
		want         string
		written      string
	}{
		{"accept", able, "accept", "That goes into ", "buy milk"},
		{"decline", able, "decline", "nothing written: declined", ""},
		{"cancel", able, "cancel", "nothing written: the client cancelled", ""},
		{"no capability", mcptypes.ClientCapabilities{}, "", "nothing written: this MCP client cannot show approval requests", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "note.txt")
			ours, theirs := jsonrpc.Pipe()
			served := make(chan error, 1)
			go func() { served <- codexserver.New(notes("note.txt"), nil).Serve(context.Background(), theirs) }()

			mux := &jsonrpc.Mux{}
			mcptypes.ElicitationCreate.Handle(mux, func(_ context.Context, p *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
				if !strings.Contains(p.Message, file) {
					t.Errorf("the question does not name the file: %s", p.Message)
				}
				return &mcptypes.ElicitResult{Action: tt.answer}, nil
			})
			client := jsonrpc.NewPeer(ours, mux, nil)
			go func() { _ = client.Run(context.Background()) }()
			must.Get(mcptypes.Initialize.Call(t.Context(), client, &mcptypes.InitializeRequestParams{
				ProtocolVersion: mcptypes.ProtocolVersion, Capabilities: tt.capabilities,
				ClientInfo: mcptypes.Implementation{Name: "t", Version: "1"},
			}))(t)
			arguments := must.Get(json.Marshal(map[string]string{"prompt": "buy milk", "cwd": dir}))(t)
			result := must.Get(mcptypes.ToolsCall.Call(t.Context(), client, &mcptypes.CallToolRequestParams{
				Name: "codex", Arguments: arguments,
			}))(t)
			if got := result.Content[0].(*mcptypes.TextContent).Text; !strings.HasPrefix(got, tt.want) {
				t.Errorf("answer %q, want %q…", got, tt.want)
			}
			if text, _ := os.ReadFile(file); string(text) != tt.written {
				t.Errorf("the file holds %q, want %q", text, tt.written)
			}
			_ = client.Close()
			<-client.Done()
			if err := <-served; err != nil {
				t.Error("served:", err)
			}
		})
	}
}
