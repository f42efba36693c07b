package browsertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

var changing = regexp.MustCompile(`\d\d:\d\d(.[AP]M)?|[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT[\d:]+Z|after [\d.]+m?s`)

// TestPicture shows the page as docs/page.png does: a command that asks to run
// outside of the sandbox, above the work so far. testdata/page.txt has the words of that picture, so
// that the picture is made again when they change: -update makes both.
func TestPicture(t *testing.T) {
	outside, err := json.Marshal(map[string]any{
		"command":                    []string{"docker", "compose", "up", "--detach", "db"},
		"with_escalated_permissions": true,
		"justification":              "The test needs the database, which is not running.",
	})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := work(t, nil,
		providertest.Call(providertest.Shell("1", "grep", "-n", "HandleFunc", "server.go")),
		providertest.Call(providertest.ToolCall{ID: "2", Name: "shell", Arguments: string(outside)}),
		providertest.Say("Done."),
	)
	const routes = "package shop\n\nfunc routes(mux *http.ServeMux) {\n\tmux.HandleFunc(\"GET /cart\", cart)\n\tmux.HandleFunc(\"POST /order\", order)\n}\n"
	if err := os.WriteFile(filepath.Join(r.cwd, "server.go"), []byte(routes), 0o644); err != nil {
		t.Fatal(err)
	}
	b := r.open(t)
	answer := r.call("Add a health check to the shop's server. It should report whether the database can be reached.")
	b.see(`document.querySelector(".ask .command").textContent === "docker compose up --detach db"`)
	b.see(`document.querySelector(".ask").innerText.includes("outside the sandbox")`)
	b.see(`document.querySelector(".log").textContent.includes("command 1 ended")`)
	b.scheme("light")
	b.do(chromedp.EmulateViewport(1280, 920))
	b.settle()
	b.still()
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
		const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(%q, "/home/you/shop");
	})()`, r.cwd))) // a picture has no folder of a test
	b.still()
	words := changing.ReplaceAllString(eval[string](b, `document.body.innerText`), "…") + "\n"
	text, picture := filepath.Join("testdata", "page.txt"), filepath.Join("..", "..", "..", "docs", "page.png")
	if *update {
		pixels, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := cmp.Or(os.WriteFile(picture, pixels, 0o644), os.WriteFile(text, []byte(words), 0o644)); err != nil {
			t.Fatal(err)
		}
	} else if want, err := os.ReadFile(text); err != nil || string(want) != words {
		t.Errorf("docs/page.png is older than the page, %v: make it again with -update; it says\n%s\nand the page\n%s", err, want, words)
	}
	b.look("picture")
	b.do(chromedp.EmulateViewport(390, 852), chromedp.Evaluate[chromedp.Void](`scrollTo({ top: 0, behavior: "instant" })`))
	b.still()
	b.see(`[...document.querySelectorAll(".ask button")].every((button) => button.getBoundingClientRect().top >= document.querySelector(".ask .command").getBoundingClientRect().bottom)`)
	if *update {
		pixels, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err := cmp.Or(err, os.WriteFile(filepath.Join("..", "..", "..", "docs", "page-phone.png"), pixels, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	b.click("Deny")
	if got := get(t, answer); got != "Done." {
		t.Errorf("the call was answered %q", got)
	}
}
