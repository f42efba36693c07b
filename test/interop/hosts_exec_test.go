package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// execAlone has Codex without a person hand over a task that asks for an approval. With full access Codex accepts every
// question with an empty form by itself.
func execAlone(t *testing.T, server []string) {
	for _, tt := range []struct {
		name          string
		host, server  []string
		called, asked bool
		made          bool
	}{
		{"full access", []string{"-s", "danger-full-access"}, nil, true, true, true},
		{"full access, a person is wanted", []string{"-s", "danger-full-access"}, []string{"--approvals", "both"}, true, true, false},
		{"read-only", nil, nil, false, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ours := providertest.New(providertest.Call(providertest.Shell("call_1", "touch", "made")), providertest.Say("done"))
			defer ours.Close()
			cwd, home := t.TempDir(), t.TempDir()
			theirs := providertest.New(providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
				namespace, _ := offered(r)
				return namespacedCall(namespace, "codex", fmt.Sprintf(`{"prompt":"p","cwd":%q,"approval-policy":"untrusted","sandbox":"danger-full-access"}`, cwd))
			}}, providertest.Say("done"))
			defer theirs.Close()
			trace := filepath.Join(home, "trace")
			args := append([]string{"--engine", "native", "--trace", trace}, tt.server...)
			config := fmt.Sprintf("model = \"mock-model\"\nmodel_provider = \"mock\"\n[model_providers.mock]\nname = \"mock\"\nbase_url = %q\nwire_api = \"responses\"\n[mcp_servers.codex]\ncommand = %q\nargs = %s\nenv = { CODEX_HOME = %q }\n",
				theirs.BaseURL(), server[0], inline(args), newHome(t, ours, "chat"))
			if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), newest(t), append(append([]string{"exec", "--skip-git-repo-check"}, tt.host...), "go on")...)
			cmd.Dir, cmd.Env = cwd, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CODEX_HOME=" + home, "TERM=xterm"}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			wire, err := os.ReadFile(trace)
			if err != nil {
				t.Fatal(err)
			}
			called := strings.Contains(string(wire), `"tools/call"`)
			asked := strings.Contains(string(wire), `"elicitation/create"`) && strings.Contains(string(wire), `"result":{"action":"accept","content":{}}`)
			_, err = os.Stat(filepath.Join(cwd, "made"))
			if called != tt.called || asked != tt.asked || (err == nil) != tt.made {
				t.Errorf("called: %v, accepted by itself: %v, the command ran: %v\n%s\n%s", called, asked, err == nil, out, wire)
			}
		})
	}
}
