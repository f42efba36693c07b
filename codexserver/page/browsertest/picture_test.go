package browsertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestPicture shows the page as docs/page.png does: a command that asks to run
// outside of the sandbox, above the work so far. With -screenshots it makes that picture.
func TestPicture(t *testing.T) {
	outside, err := json.Marshal(map[string]any{
		"command":                    []string{"docker", "compose", "up", "--detach", "db"},
		"with_escalated_permissions": true,
		"justification":              "The test needs the database, which is not running.",
	})
	if err != nil {
		t.Fatal(err)
	}
	model := providertest.New(
		providertest.Call(providertest.Shell("1", "grep", "-n", "HandleFunc", "server.go")),
		providertest.Call(providertest.ToolCall{ID: "2", Name: "shell", Arguments: string(outside)}),
		providertest.Say("Done."),
	)
	t.Cleanup(model.Close)
	e, err := native.New(&native.Options{CodexHome: t.TempDir(), Overrides: map[string]any{
		"model":                          "gpt-5-codex",
		"model_provider":                 "local",
		"model_providers.local.name":     "local",
		"model_providers.local.base_url": model.BaseURL(),
		"approval_policy":                "on-request",
		"sandbox_mode":                   "workspace-write",
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

	b := r.open(t)
	answer := r.call("Add a health check to the shop's server. It should report whether the database can be reached.")
	b.see(`document.querySelector(".ask .command").textContent === "docker compose up --detach db"`)
	b.see(`document.querySelector(".ask").innerText.includes("outside the sandbox")`)
	b.see(`document.querySelector(".timeline").innerText.includes("POST /order")`)
	b.scheme("light")
	b.do(chromedp.EmulateViewport(920, 920))
	if *screenshots != "" {
		b.settle()
		eval[bool](b, `Promise.all(document.getAnimations().map((a) => a.finished)).then(() => true)`)
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(*screenshots, "page.png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.click("Deny")
	if got := get(t, answer); got != "Done." {
		t.Errorf("the call was answered %q", got)
	}
}
