package interop

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// shareOne runs hosts one after the other with --shared and the same homes. They have one
// server, although each gives it other variables.
func shareOne(t *testing.T, server []string, names ...string) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*limit)
	defer cancel()
	dir := t.TempDir()
	work, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	for _, d := range []string{work, filepath.Join(home, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	worker := providertest.New(providertest.Turn{Text: []string{"done"}, Repeat: true})
	defer worker.Close()
	env := map[string]string{"CODEX_HOME": newHome(t, worker, "chat"), "HOME": home, "PATH": os.Getenv("PATH")}
	shared := func(words ...string) string {
		cmd := exec.CommandContext(ctx, server[0], append([]string{"shared"}, words...)...)
		cmd.Env = setup{Env: env}.environment()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("shared %v: %v\n%s", words, err, out)
		}
		return string(out)
	}
	defer shared("stop")
	for _, h := range hosts {
		if !slices.Contains(names, h.name) {
			continue
		}
		model := newHostModel(func(outputs []string) (string, *call) {
			if len(outputs) > 0 {
				return "all is done", nil
			}
			return "", &call{Tool: "codex", Arguments: object{"prompt": "hello", "cwd": work}}
		})
		defer model.close()
		cmd := h.command(ctx, t, hostSetup{
			setup: setup{Command: slices.Concat(server, []string{"--shared", "--engine", "native"}), Cwd: work, Env: maps.Clone(env)},
			pkg:   below(h.folder(), h.pkg), openai: model.openai.BaseURL(), gemini: model.gemini.URL, home: home, prompt: "Please delegate the task.",
		})
		out, err := cmd.CombinedOutput()
		outputs, over, faults := model.heard()
		if err != nil || !over || len(faults) > 0 || len(outputs) != 1 || !strings.Contains(outputs[0], "done") {
			t.Errorf("%s: %v; its model received %q; the script came to its end: %v; %q\n%s", h.name, err, outputs, over, faults, out)
		}
	}
	if said := shared(); strings.Count(said, "server ") != 1 {
		t.Errorf("the servers:\n%s", said)
	} else {
		t.Logf("the server:\n%s", said)
	}
}
