package telemetry

import (
	"encoding/json"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
)

// TestKnownTools checks that a span has the name of every tool that there is, and of nothing else.
func TestKnownTools(t *testing.T) {
	c := servertest.Dial(t, codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: t.TempDir()}), nil)
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal([]byte(c.Ask(t, "tools/list", `{}`)), &list); err != nil || len(list.Tools) < 8 {
		t.Fatalf("%d tools, %v", len(list.Tools), err)
	}
	for _, tool := range list.Tools {
		if knownTool(tool.Name) != tool.Name {
			t.Errorf("no span has the name of %s", tool.Name)
		}
	}
	if name := knownTool("codex-nosuch"); name != "" {
		t.Errorf("a span has the name %s", name)
	}
}
