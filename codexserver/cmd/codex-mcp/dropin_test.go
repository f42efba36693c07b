package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestTodaysConfiguration uses a config.toml of today that has this program as an MCP server,
// and a -c for Codex. The server answers, does not start itself, and logs each warning
// once.
func TestTodaysConfiguration(t *testing.T) {
	bin := built(t)
	model := providertest.New(providertest.Say("one"), providertest.Say("two"))
	t.Cleanup(model.Close)
	f := newFolders(t)
	config := "model_reasoning_effort = \"utmost\"\napproval_policy = { granular = { sandbox_approval = true, rules = true, mcp_elicitations = true } }\n" +
		fmt.Sprintf(configOf, model.BaseURL()) + fmt.Sprintf("[mcp_servers.codex]\ncommand = %q\nargs = [\"mcp-server\"]\n[tools.web_search]\ncontext_size = \"low\"\n", bin)
	writeConfig(t, f.home, config)
	p := start(t, f, "-engine", "native", "-c", "sandbox=workspace-write", "-c", "mcp_servers.nosuch.enabled=false", "--disable", "unified_exec", "-c", "reasoning_effort=high")
	seen := map[int]bool{}
	p.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	p.expect(pattern(t, `{"id":0}`), seen)
	for id, want := range []string{"one", "two"} {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"hi","developer-instructions":"be brief"}}}`, id+1))
		p.expect(pattern(t, fmt.Sprintf(`{"id":%d,"result":{"structuredContent":{"content":%q}}}`, id+1, want)), seen)
	}
	for _, request := range model.Requests() {
		if strings.Contains(string(request.Body), "codex__codex") || !strings.Contains(string(request.Body), "be brief") {
			t.Errorf("the model was asked %s", request.Body)
		}
	}
	p.stdin.Close()
	if code := p.wait(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	for _, said := range []string{
		"mcp_servers.codex is left out", "-c sandbox is ignored", "approval_policy: granular is read as", "tools.web_search: the table", "model_reasoning_effort:",
		"on the command line it ignores unified_exec", `msg="unknown key" at="-c reasoning_effort"`,
	} {
		if n := strings.Count(p.errors(), said); n != 1 {
			t.Errorf("%q was logged %d times", said, n)
		}
	}
}
