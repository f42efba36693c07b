//go:build unix

package native_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestUnloadEndsServers checks that the MCP servers end with an unload, and that the next turn
// starts them again.
func TestUnloadEndsServers(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	call := providertest.Call(providertest.ToolCall{ID: "c1", Name: "toy__echo", Arguments: `{"x":"1"}`})
	script := fmt.Sprintf(`echo $$ >> %s; exec %s`, pids, os.Args[0])
	b := setup(t, fmt.Sprintf("---\n[mcp_servers.toy]\ncommand = \"sh\"\nargs = [\"-c\", %q]\nenv = { PLAY = \"mcp server\" }\n", script),
		native.Limits{}, call, providertest.Say("one"), call, providertest.Say("two"))
	c := b.start(t, &host{}, protocol.Config{})
	alive := func(n int) bool {
		t.Helper()
		text, err := os.ReadFile(pids)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Fields(string(text))
		if len(all) != n {
			t.Fatalf("started %d times, want %d", len(all), n)
		}
		pid, err := strconv.Atoi(all[n-1])
		if err != nil {
			t.Fatal(err)
		}
		return syscall.Kill(pid, 0) == nil
	}
	turn(t, c, say("first"))
	if !alive(1) {
		t.Error("the server ended between turns")
	}
	unload(t, c)
	if alive(1) {
		t.Error("the server is still running")
	}
	turn(t, c, say("second"))
	if !alive(2) {
		t.Error("the server did not start again")
	}
	for _, r := range b.provider.Requests()[1:] {
		if outputs := r.ToolOutputs(); len(outputs) == 0 || outputs[len(outputs)-1].Output != `[{"type":"text","text":"echo:1"}]` {
			t.Errorf("outputs %q", outputs)
		}
	}
}
