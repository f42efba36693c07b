//go:build realcodex

package appserver_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestRealChoices checks that the choices of a call reach the model through the real Codex,
// which keeps the effort for a later process.
func TestRealChoices(t *testing.T) {
	t.Parallel()
	const (
		image  = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
		schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	)
	r := newReal(t, "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n")
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	turn := func(c engine.Conversation, in protocol.TurnInput, say string) string {
		t.Helper()
		r.Add(
			providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{"cmd": "echo x >> " + root + "/made", "yield_time_ms": 20000})),
			providertest.Say(say))
		if err := c.Turn(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		return r.last()
	}
	made := func() int {
		text, _ := os.ReadFile(filepath.Join(root, "made"))
		return len(text) / 2
	}
	h := &recorder{}
	c := r.start(t, h, protocol.Config{
		ApprovalPolicy: protocol.ApprovalNever, Sandbox: protocol.SandboxWorkspaceWrite, FromCall: true,
		Model: "gpt-5.5", Effort: "high", WebSearch: new(true), Overrides: raw("sandbox_workspace_write.writable_roots", fmt.Sprintf("[%q]", root)),
	})
	in := text("look")
	in.Items = append(in.Items, protocol.InputItem{Type: protocol.InputImage, ImageURL: image})
	in.OutputSchema = json.RawMessage(schema)
	got := turn(c, in, `{"n":1}`)
	for _, want := range []string{image, `"effort":"high"`, `"type":"web_search"`, `"json_schema"`, `"required":["n"]`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if made() != 1 {
		t.Errorf("the command did not write in the folder: %s", got)
	}
	next := text("next")
	next.Effort = "low"
	if got := turn(c, next, "ok"); strings.Contains(got, "json_schema") || !strings.Contains(got, `"effort":"low"`) || made() != 2 {
		t.Errorf("the next turn, %d: %s", made(), got)
	}
	r.restart(t)
	again := r.resume(t, c, &recorder{}, protocol.Config{FromCall: true})
	if got := turn(again, text("again"), "ok"); !strings.Contains(got, `"effort":"low"`) {
		t.Errorf("after a restart: %s", got)
	}
}
