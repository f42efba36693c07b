package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEndToEndCalledCodex starts the program by a link called codex, which is
// also the first codex of its PATH, with a command line that cannot be changed.
func TestEndToEndCalledCodex(t *testing.T) {
	t.Parallel()
	bin := built(t)
	dir := t.TempDir()
	link := filepath.Join(dir, "codex")
	must.OK(t, os.Symlink(bin, link))
	f, model := prepare(t, "never", providertest.Say("Served."))
	cmd := exec.CommandContext(t.Context(), link, "-m", "gpt-5.3-codex", "mcp-server", "--log", "info")
	cmd.Dir, cmd.Env = f.cwd, []string{"PATH=" + dir, "HOME=" + f.user, "CODEX_HOME=" + f.home, "CODEX_BIN="} // the PATH has no other Codex
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"work"}}}` + "\n")
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"Served.", "name=native", "Codex cannot be used: "} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, no %q in\n%s", err, want, out)
		}
	}
	if got := string(model.Requests()[0].Body); !strings.Contains(got, `"model":"gpt-5.3-codex"`) {
		t.Errorf("the model was asked %s", got)
	}
}
