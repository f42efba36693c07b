package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestVersions checks the results for clients of every version. All have the thread's id.
func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		asked, spoken             string
		annotations, outputSchema bool
	}{
		{"2024-11-05", "2024-11-05", false, false},
		{"2025-03-26", "2025-03-26", true, false},
		{"2025-06-18", "2025-06-18", true, true},
		{"2025-11-25", "2025-11-25", true, true},
		{"2099-01-01", "2025-11-25", true, true},
		{"bogus", "2025-11-25", true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.Echo), nil), nil)
			hello := c.Ask(t, "initialize", fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}`, tt.asked))
			if !strings.Contains(hello, fmt.Sprintf(`"protocolVersion":%q`, tt.spoken)) {
				t.Errorf("%s: %s", tt.asked, hello)
			}
			tools := c.Ask(t, "tools/list", `{}`)
			result := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"},"_meta":{"progressToken":1}}`)
			for what, is := range map[string][2]bool{
				"annotations":       {strings.Contains(tools, `"annotations"`), tt.annotations},
				"outputSchema":      {strings.Contains(tools, `"outputSchema"`), tt.outputSchema},
				"structuredContent": {strings.Contains(result, `"structuredContent":{"threadId":"`), true}, // as Codex did
			} {
				if is[0] != is[1] {
					t.Errorf("%s: %s is there: %v", tt.asked, what, is[0])
				}
			}
			if again := c.Ask(t, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`); !strings.Contains(again, "(-32600)") {
				t.Errorf("a second initialize: %s", again)
			}
		})
	}
}

// TestElicitationCapability asks only clients that declared forms.
func TestElicitationCapability(t *testing.T) {
	for capabilities, asked := range map[string]bool{
		`{}`:                                   false,
		`{"elicitation":null}`:                 false,
		`{"elicitation":{}}`:                   true,
		`{"elicitation":{"form":{}}}`:          true,
		`{"elicitation":{"url":{}}}`:           false,
		`{"elicitation":{"form":{},"url":{}}}`: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := servertest.Dial(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil), nil)
			c.Ask(t, "initialize", fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"t","version":"1"}}`, capabilities))
			c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"p"}}`)
			was := slices.ContainsFunc(c.Heard(), func(line string) bool { return strings.HasPrefix(line, "elicitation/create") })
			if was != asked {
				t.Errorf("%s: asked %v, want %v", capabilities, was, asked)
			}
		})
	}
}

// TestMissingCwdIsTheClientsRoot asks a client with roots for its folder.
func TestMissingCwdIsTheClientsRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &servertest.Engine{Turn: servertest.Echo}
		mux := &jsonrpc.Mux{}
		mcptypes.RootsList.Handle(mux, func(context.Context, *mcptypes.ListRootsRequestParams) (*mcptypes.ListRootsResult, error) {
			return &mcptypes.ListRootsResult{Roots: []mcptypes.Root{{URI: "https://x/"}, {URI: "file:///some/where"}}}, nil
		})
		ours, theirs := jsonrpc.Pipe()
		peer := jsonrpc.NewPeer(ours, mux, nil)
		running, served := make(chan error, 1), make(chan error, 1)
		go func() { running <- peer.Run(context.Background()) }()
		go func() { served <- codexserver.New(e, nil).Serve(context.Background(), theirs) }()
		for _, params := range []string{
			`{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"t","version":"1"}}`,
		} {
			if err := peer.Call(t.Context(), "initialize", json.RawMessage(params), nil); err != nil {
				t.Fatal(err)
			}
		}
		for arguments, want := range map[string]string{
			`{"prompt":"p"}`:                 "/some/where",
			`{"prompt":"p","cwd":"/else/x"}`: "/else/x",
		} {
			if err := peer.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"codex","arguments":`+arguments+`}`), nil); err != nil {
				t.Fatal(err)
			}
			all := e.Started()
			if got := all[len(all)-1].Config.Cwd; got != want {
				t.Errorf("%s: cwd %q, want %q", arguments, got, want)
			}
		}
		peer.Close()
		if err := errors.Join(<-running, <-served); err != nil {
			t.Error(err)
		}
	})
}
