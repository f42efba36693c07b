package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"
)

func TestMain(m *testing.M) {
	native.Main() // does not return if the engine started this process to run commands
	os.Exit(m.Run())
}

// planner is a scripted model of the Gemini API. It makes a call, and then says what it learned.
func planner(t *testing.T, call string) *genai.ClientConfig {
	learned := regexp.MustCompile(`"functionResponse":.*"(?:content|error)":"([^"\\]*)`)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasSuffix(r.URL.Path, "/models/m:generateContent") {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		part := `{"functionCall":` + call + `}`
		if found := learned.FindSubmatch(body); found != nil {
			part = fmt.Sprintf(`{"text":"Codex says: %s"}`, found[1])
		} else if offered := strings.Count(string(body), `"parametersJsonSchema"`); offered != 2 {
			t.Errorf("the model is offered %d tools: %s", offered, body)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"candidates":[{"content":{"role":"model","parts":[%s]},"finishReason":"STOP"}]}`, part)
	}))
	t.Cleanup(s.Close)
	return &genai.ClientConfig{APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: s.URL}}
}

// TestAgent has an agent hand a task to Codex, both with scripted models. A person answers in the
// terminal. Only yes makes the folder, and the agent's model learns why not. That model cannot
// choose that nobody is asked.
func TestAgent(t *testing.T) {
	const call = `{"name":"codex","args":{"prompt":"Make a folder."}}`
	for name, c := range map[string]struct {
		call, typed string
		made        bool
		learned     string
	}{
		"yes":    {call, "yes\n", true, "done"},
		"no":     {call, "no\n", false, "the command was not run: declined"},
		"stop":   {call, "stop\n", false, "Tool execution failed. Details: Turn aborted: the client cancelled the approval request"},
		"nobody": {call, "", false, "the command was not run: declined"},
		"never": {`{"name":"codex","args":{"prompt":"Make a folder.","approval-policy":"never"}}`, "yes\n", false,
			"Tool execution failed. Details: codex: argument /approval-policy is locked: the server's own configuration decides"},
	} {
		t.Run(name, func(t *testing.T) {
			cwd, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(cwd)
			codex := providertest.New(
				providertest.Call(providertest.Shell("1", "mkdir", "made")),
				providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
					if text := r.LastToolOutput(); text != "" {
						return providertest.Say(text)
					}
					return providertest.Say("done")
				}})
			defer codex.Close()
			e, err := native.New(&native.Options{CodexHome: t.TempDir(), Overrides: map[string]any{
				"model": "m", "model_provider": "p", "model_providers.p.base_url": codex.BaseURL(), "approval_policy": "untrusted",
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()

			var out strings.Builder
			if err := run(t.Context(), e, "m", planner(t, c.call), "Begin.", strings.NewReader(c.typed), &out); err != nil {
				t.Fatal(err)
			}
			screen := "Codex says: " + c.learned + "\n"
			if name == "nobody" { // a terminal shows what is typed
				screen = "\n" + screen
			}
			if name != "never" {
				screen = "Allow Codex to run `mkdir made` in `" + cwd + "`?\nIf approved, it runs outside the sandbox, once: files and network are open. (yes, no, stop) " + screen
			}
			if diff := cmp.Diff(screen, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := os.Stat("made"); (err == nil) != c.made {
				t.Errorf("the folder: %v", err)
			}
		})
	}
}
