package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestServersPort runs a command that reads the token and connects to its own server. Only
// the sandbox's network keeps it from approving its own requests, as SECURITY.md says.
func TestServersPort(t *testing.T) {
	for _, tt := range []struct {
		mode    string
		network bool
	}{{"read-only", false}, {"workspace-write", false}, {"workspace-write", true}} {
		t.Run(fmt.Sprint(tt.mode, " ", tt.network), func(t *testing.T) {
			t.Parallel()
			boxtest.Need(t)
			f := newFolders(t)
			var port atomic.Value
			file := filepath.Join(f.home, "codex-mcp", "http-token")
			model := providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
				if len(r.ToolOutputs()) > 0 {
					return providertest.Say("done")
				}
				return providertest.Call(providertest.Shell("c1", "bash", "-c", fmt.Sprintf(
					`cat %q; if exec 3<>/dev/tcp/127.0.0.1/%s; then printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3; head -n 1 <&3; else echo not reached; fi`, file, port.Load())))
			}})
			t.Cleanup(model.Close)
			s := startHTTP(t, f, model, "-c", "approval_policy=never", "-c", "sandbox_mode="+tt.mode,
				"-c", fmt.Sprintf("sandbox_workspace_write.network_access=%t", tt.network))
			port.Store(s.url[strings.LastIndexByte(s.url, ':')+1:])
			if status, body, err := s.call("go"); status != 200 || err != nil || !strings.Contains(body, "done") {
				t.Fatalf("%d %s %v", status, body, err)
			}
			output := model.Requests()[1].LastToolOutput()
			if strings.Contains(output, "200 OK") != tt.network || strings.Contains(output, "not reached") == tt.network {
				t.Errorf("a command printed %s", output)
			}
			if _, err := os.Stat(file); err != nil || !strings.Contains(output, s.token) {
				t.Errorf("the token cannot be read (%v): SECURITY.md says that it can; the command printed %s", err, output)
			}
		})
	}
}
