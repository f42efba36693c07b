package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// TestOwnEngine has a server of an engine with a name and without a sandbox say what it is, in place of Codex, to a client
// of each era.
func TestOwnEngine(t *testing.T) {
	e := engine.TurnFunc(servertest.AskExec).Named(`Ro"bo`)
	c := servertest.Dial(t, codexserver.New(e, &codexserver.Options{Home: t.TempDir()}), nil)
	for method, params := range map[string]string{
		"initialize":      `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`,
		"tools/list":      `{}`,
		"server/discover": `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`,
	} {
		said := strings.ReplaceAll(c.Ask(t, method, params), `"sandbox":{`, "") // the name of the argument
		if strings.Contains(said, "Codex") || strings.Contains(said, "sandbox") || !strings.Contains(said, `Ro\"bo`) {
			t.Errorf("%s: %s", method, said)
		}
		if method != "tools/list" && !strings.Contains(said, `"title":"Ro\"bo"`) {
			t.Errorf("%s has no title: %s", method, said)
		}
	}
}

// TestOwnEngineAsks asks about full access for an engine that says nothing of it, by an argument, by a key and by
// newConversation, and its questions have its name.
func TestOwnEngineAsks(t *testing.T) {
	const full, declined = "full access, no sandbox", servertest.Decline
	for _, tt := range []struct {
		name, answer, arguments string
		access                  setting.FullAccess
		asked                   string // part of the question, "" for none
		runs                    bool
	}{
		{"declined", declined, `"sandbox":"danger-full-access"`, "", "Allow Robo " + full, false},
		{"by a key", declined, `"config":{"sandbox_mode":"danger-full-access"}`, "", "Allow Robo " + full, false},
		{"approved", servertest.Accept, `"sandbox":"danger-full-access","approval-policy":"never"`, "", "Nothing is asked afterwards", true},
		{"allowed", declined, `"sandbox":"danger-full-access"`, setting.FullAccessAllow, "", true},
		{"refused", servertest.Accept, `"sandbox":"danger-full-access"`, setting.FullAccessDeny, "", false},
		{"the argument before the key", declined, `"sandbox":"read-only","config":{"sandbox_mode":"danger-full-access"}`, "", "", true},
		{"less", declined, `"sandbox":"workspace-write"`, "", "", true},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			ran := false
			e := engine.TurnFunc(func(context.Context, engine.Host, []protocol.InputItem) error { ran = true; return nil }).Named("Robo")
			o := &codexserver.Options{Calls: codexserver.CallOptions{FullAccess: tt.access}}
			c := servertest.Connect(t, codexserver.New(e, o), servertest.After(2*time.Second, tt.answer))
			got := c.CallTool(t, "codex", fmt.Sprintf(`{"prompt":"p","cwd":%q,%s}`, t.TempDir(), tt.arguments))
			synctest.Wait()
			asked := fmt.Sprintf("%s", c.Received("elicitation/create"))
			if ran != tt.runs || !strings.Contains(asked, tt.asked) || (tt.asked == "") != (asked == "[]") {
				t.Errorf("ran: %t, asked %s: %s", ran, asked, got)
			}
		})
	}
}
