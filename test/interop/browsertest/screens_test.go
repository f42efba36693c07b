package browsertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
)

// shop starts a server with the native engine and its defaults. The tasks are in the folder of a small
// shop, and the model says these turns.
func shop(t *testing.T, turns ...providertest.Turn) *rig {
	t.Helper()
	model := providertest.New(turns...)
	t.Cleanup(model.Close)
	e, err := native.New(&native.Options{CodexHome: t.TempDir(), Overrides: map[string]any{
		"model":                          "gpt-5-codex",
		"model_provider":                 "local",
		"model_providers.local.name":     "local",
		"model_providers.local.base_url": model.BaseURL(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	r := start(t, e, nil)
	if r.cwd, err = os.MkdirTemp("", "shop"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(r.cwd) })
	const routes = "package shop\n\nfunc routes(mux *http.ServeMux) {\n\tmux.HandleFunc(\"GET /cart\", cart)\n\tmux.HandleFunc(\"POST /order\", order)\n}\n"
	if err := os.WriteFile(filepath.Join(r.cwd, "server.go"), []byte(routes), 0o644); err != nil {
		t.Fatal(err)
	}
	return r
}

var changing = regexp.MustCompile(`\d\d:\d\d(.[AP]M)?|[0-9a-f]{8}-[0-9a-f-]{27}|exit 0( · [\d.]+ m?s)?`)

// words returns the text of the page, without what differs from run to run.
func (b *tab) words() string {
	b.t.Helper()
	b.still()
	return changing.ReplaceAllString(eval[string](b, `document.body.innerText`), "…") + "\n"
}

// TestScreens has the text of the page without a question, with one about a command, with one about a
// patch, and when all is decided, on a desktop and on a phone. testdata/screens.txt has it; -update
// makes it again.
func TestScreens(t *testing.T) {
	outside, err := json.Marshal(map[string]any{
		"command": []string{"git", "push", "origin", "main"}, "with_escalated_permissions": true, "justification": "The change has to be published.",
	})
	if err != nil {
		t.Fatal(err)
	}
	r := shop(t,
		providertest.Call(providertest.ToolCall{ID: "1", Name: "shell", Arguments: string(outside)}),
		providertest.Call(providertest.Tool("2", "apply_patch", map[string]any{"input": "*** Begin Patch\n*** Update File: server.go\n@@\n" +
			" \tmux.HandleFunc(\"GET /cart\", cart)\n+\tmux.HandleFunc(\"GET /health\", health)\n*** Add File: health.go\n+package shop\n*** End Patch\n"})),
		providertest.Call(providertest.Shell("3", "grep", "-c", "health", "server.go")),
		providertest.Say("The server has a **health check**:\n\n- `server.go` serves `GET /health`\n- `health.go` is still empty\n"),
	)
	b := r.open(t)
	var all strings.Builder
	look := func(name string) {
		for _, screen := range []struct {
			name          string
			width, height int64
		}{{"desktop", 1200, 900}, {"phone", 390, 852}} {
			b.do(chromedp.EmulateViewport(screen.width, screen.height))
			text := strings.ReplaceAll(b.words(), r.cwd, "/home/you/shop")
			fmt.Fprintf(&all, "== %s, %s\n%s\n", name, screen.name, text)
			if !eval[bool](b, `document.scrollingElement.scrollWidth <= innerWidth`) {
				t.Errorf("%s, %s: wider than the screen", name, screen.name)
			}
			if *screenshots != "" {
				picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
				if err == nil {
					err = os.WriteFile(filepath.Join(*screenshots, "screen-"+name+"-"+screen.name+".png"), picture, 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		b.do(chromedp.EmulateViewport(1200, 900))
	}
	look("idle")
	answer := r.call("Add a health check to the shop's server, and publish it.")
	b.see(`document.querySelector(".ask .command").textContent === "git push origin main"`)
	look("a command")
	b.click("Deny")
	b.see(`document.querySelector(".ask").innerText.includes("health.go")`)
	look("a patch")
	b.click("Approve once")
	if got := get(t, answer); !strings.Contains(got, "health check") {
		t.Errorf("the call was answered %q", got)
	}
	// The end of the turn comes after its last words.
	b.see(`document.querySelector(".timeline").innerText.includes("is still empty") && questions.size === 0 && /^Done$/m.test(document.body.innerText) && !/working|Stop the turn/.test(document.body.innerText)`)
	look("decided")

	file := filepath.Join("testdata", "screens.txt")
	if *update {
		if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
