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

// TestRealMissingServers gives the real Codex MCP servers that do not start, each in another way, and one that does: the result of
// each turn names the first ones, with why.
func TestRealMissingServers(t *testing.T) {
	t.Parallel()
	tables, want := servertest.BrokenServers(t)
	r := newReal(t, "approval_policy = \"never\"\n"+tables+demo(t), providertest.Say("one"), providertest.Say("two"))
	c := servertest.Connect(t, codexserver.New(r.engine, &codexserver.Options{Changes: codexserver.ChangeOptions{Read: new(false)}}), nil)
	var result struct {
		StructuredContent protocol.TurnResult
	}
	must.OK(t, json.Unmarshal([]byte(c.CallTool(t, "codex", fmt.Sprintf(`{"prompt":"go","cwd":%q}`, r.cwd))), &result))
	first := result.StructuredContent
	for _, did := range []protocol.TurnResult{first, again(t, c, first.ThreadID)} {
		var got []string
		for _, m := range did.Missing {
			if got = append(got, m.Server); m.Why == "" {
				t.Errorf("%s is missing for no reason", m.Server)
			}
			t.Log(m)
		}
		must.Equal(t, "missing", want, got)
		must.Equal(t, "status", protocol.StatusCompleted, did.Status)
	}
}

// again runs a further turn of a thread.
func again(t *testing.T, c *servertest.Client, thread string) protocol.TurnResult {
	t.Helper()
	var result struct {
		StructuredContent protocol.TurnResult
	}
	must.OK(t, json.Unmarshal([]byte(c.CallTool(t, "codex-reply", fmt.Sprintf(`{"prompt":"again","threadId":%q}`, thread))), &result))
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
