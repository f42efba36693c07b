package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
	os.Exit(m.Run())
}

var threads = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

// TestAgent has an agent hand a task to Codex, both with scripted models. A person answers in the
// terminal. Only yes makes the folder, and the agent's model learns why not.
func TestAgent(t *testing.T) {
	for typed, want := range map[string]struct {
		made    bool
		learned string
	}{
		"yes\n":   {true, `{"threadId":"ID","status":"completed","content":"It says: "}`},
		"no\n":    {false, `{"threadId":"ID","status":"completed","content":"It says: the command was not run: declined"}`},
		"stop\n":  {false, `{"threadId":"ID","status":"aborted","content":"Turn aborted: the client cancelled the approval request"}`},
		"YES?!\n": {false, `{"threadId":"ID","status":"completed","content":"It says: the command was not run: declined"}`},
		"":        {false, `{"threadId":"ID","status":"completed","content":"It says: the command was not run: declined"}`},
	} {
		t.Run(typed, func(t *testing.T) {
			cwd, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(cwd)
			agent := providertest.New(
				providertest.Call(providertest.Tool("1", "codex", map[string]any{"prompt": "Make a folder."})),
				providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
					return providertest.Say("Codex answered " + r.LastToolOutput())
				}})
			defer agent.Close()
			codex := providertest.New(
				providertest.Call(providertest.Shell("1", "mkdir", "made")),
				providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
					return providertest.Say("It says: " + r.LastToolOutput())
				}})
			defer codex.Close()

			var out strings.Builder
			config := &openai.ChatModelConfig{BaseURL: agent.BaseURL(), Model: "planner", APIKey: "key"}
			if err := run(t.Context(), config, client.Options{Server: serve(t, codex)}, "Begin.", strings.NewReader(typed), &out); err != nil {
				t.Fatal(err)
			}
			end := "" // a terminal shows what is typed
			if typed == "" {
				end = "\n"
			}
			screen := "Allow Codex to run `mkdir made` in `" + cwd + "`?\nIf approved, it runs outside the sandbox, once: files and network are open. (yes, no, stop) " +
				end + "Codex answered " + want.learned + "\n"
			if diff := cmp.Diff(screen, threads.ReplaceAllString(out.String(), "ID")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := os.Stat("made"); (err == nil) != want.made {
				t.Errorf("the folder: %v", err)
			}
		})
	}
}

// serve makes a server in this process with a scripted model.
func serve(t *testing.T, model *providertest.Server) *codexserver.Server {
	t.Helper()
	home := t.TempDir()
	config := fmt.Sprintf("model = \"m\"\nmodel_provider = \"p\"\n[model_providers.p]\nbase_url = %q\nwire_api = \"chat\"\n", model.BaseURL())
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	engine, err := native.New(&native.Options{CodexHome: home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return codexserver.New(engine, &codexserver.Options{Home: home})
}
