//go:build realcodex

package appserver_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRealMissingServers gives the real Codex MCP servers that do not start, each in another way, one that still starts when the turn
// ends, and one that has started: the result of each turn names the others, with why.
func TestRealMissingServers(t *testing.T) {
	t.Parallel()
	tables, want := servertest.BrokenServers(t)
	want = append(want, "l-still-starts")
	tables += "[mcp_servers.l-still-starts]\ncommand = \"sleep\"\nargs = [\"600\"]\nstartup_timeout_sec = 300\n"
	r := newReal(t, "approval_policy = \"never\"\n"+tables+demo(t), providertest.Say("one"), providertest.Say("two"))
	c := servertest.Connect(t, codexserver.New(r.engine, &codexserver.Options{Changes: codexserver.ChangeOptions{Read: new(false)}}), nil)
	first := did(t, c, "codex", fmt.Sprintf(`{"prompt":"go","cwd":%q}`, r.cwd))
	second := did(t, c, "codex-reply", fmt.Sprintf(`{"prompt":"again","threadId":%q}`, first.ThreadID))
	for _, result := range []protocol.TurnResult{first, second} {
		var got []string
		for _, m := range result.Missing {
			if got = append(got, m.Server); m.Why == "" {
				t.Errorf("%s is missing for no reason", m.Server)
			}
		}
		must.Equal(t, "missing", want, got)
		must.Equal(t, "status", protocol.StatusCompleted, result.Status)
	}
}

// did calls a tool, and returns the result of its turn.
func did(t *testing.T, c *servertest.Client, tool, arguments string) protocol.TurnResult {
	t.Helper()
	var result struct {
		StructuredContent protocol.TurnResult
	}
	must.OK(t, json.Unmarshal([]byte(c.CallTool(t, tool, arguments)), &result))
	return result.StructuredContent
}

// TestRealRequiredServer has the real Codex fail because of an MCP server that its configuration requires, before the model is asked.
func TestRealRequiredServer(t *testing.T) {
	t.Parallel()
	r := newReal(t, "approval_policy = \"never\"\n[mcp_servers.db]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"exit 3\"]\nrequired = true\n", providertest.Say("one"))
	_, err := r.engine.Start(t.Context(), protocol.Config{Cwd: r.cwd}, &recorder{})
	must.Fail(t, "the start", "db", err)
	if n := len(r.Requests()); n != 0 {
		t.Errorf("%d requests after %v", n, err)
	}
}
