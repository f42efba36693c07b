package interop

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestCommandLines starts the command lines that public projects wrote for codex
// mcp-server, unchanged, by a link called codex. The official Go client hands over a task
// and continues it.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "codex")
	if err := os.Symlink(ours(t)[0], link); err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct{ name, codex string }{{"native", ""}, {"codex", newest(t)}} {
		for _, line := range []struct {
			project string
			args    []string
			model   string
			effort  string
			sandbox string // in the model's words
		}{
			{"claude-delegator", []string{"-m", "gpt-5.3-codex", "mcp-server"}, "gpt-5.3-codex", "", "danger-full-access"},
			{"claude-delegator, all flags", []string{"-s", "workspace-write", "-m", "gpt-5.3-codex", "-c", `model_reasoning_effort="xhigh"`, "mcp-server"}, "gpt-5.3-codex", "xhigh", "workspace-write"},
			{"quest", []string{"-m", "gpt-5.3-codex", "mcp-server"}, "gpt-5.3-codex", "", "danger-full-access"},
			{"deliberation", []string{"mcp-server", "-c", "model=gpt-5.5"}, "gpt-5.5", "", "danger-full-access"},
			{"codex-mcp-starter", []string{"mcp", "-c", "model=gpt-5", "-c", "model_reasoning_effort=high"}, "gpt-5", "high", "danger-full-access"},
		} {
			t.Run(e.name+"/"+line.project, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				model := providertest.New(providertest.Say("the first answer"), providertest.Say("the second answer"))
				defer model.Close()
				home, cwd := newHome(t, model, "responses"), t.TempDir()
				env := map[string]string{"PATH": filepath.Dir(link) + ":/usr/bin:/bin", "HOME": home, "CODEX_HOME": home, "TERM": "xterm"}
				if e.codex != "" {
					env["CODEX_BIN"] = e.codex
				}
				m := &meeting{witness: &witness{}, model: model, cwd: cwd}
				var err error
				m.session, err = gosdk{}.connect(ctx, setup{Command: append([]string{link}, line.args...), Cwd: cwd, Env: env}, m.witness)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := m.close(); err != nil {
						t.Errorf("close: %v", err)
					}
				}()
				first := m.do(ctx, t, "codex", map[string]any{"prompt": "the first prompt", "cwd": cwd})
				first.is(t, false, "the first answer")
				m.do(ctx, t, "codex-reply", map[string]any{"threadId": first.Structured.ThreadID, "prompt": "the second prompt"}).is(t, false, "the second answer")
				m.modelWasTold(t, "the first prompt")
				var request struct {
					Model     string
					Reasoning struct{ Effort string }
				}
				body := model.Requests()[0].Body
				if err := json.Unmarshal(body, &request); err != nil {
					t.Fatal(err)
				}
				if request.Model != line.model || line.effort != "" && request.Reasoning.Effort != line.effort {
					t.Errorf("the model was asked as %+v", request)
				}
				if codexs := strings.Contains(string(body), `"exec_command"`); codexs != (e.codex != "") {
					t.Errorf("the other engine ran: the model was offered Codex's own tool: %v", codexs)
				}
				if !strings.Contains(string(body), line.sandbox) {
					t.Errorf("the model was not told of the sandbox %s:\n%s", line.sandbox, body)
				}
			})
		}
	}
}
