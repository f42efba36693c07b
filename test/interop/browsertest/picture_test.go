package browsertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestPicture shows the page as docs/use/page.png does: a command that asks to run
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
	r := shop(t,
		providertest.Call(providertest.Shell("1", "grep", "-n", "HandleFunc", "server.go")),
		providertest.Call(providertest.ToolCall{ID: "2", Name: "shell", Arguments: string(outside)}),
		providertest.Say("Done."),
	)

	b := r.open(t)
	answer := r.call("Add a health check to the shop's server. It should report whether the database can be reached.")
	b.see(`document.querySelector(".ask .command").textContent === "docker compose up --detach db"`)
	b.see(`document.querySelector(".ask").innerText.includes("outside the sandbox")`)
	b.see(`document.querySelector(".timeline").innerText.includes("POST /order")`)
	b.scheme("light")
	b.do(chromedp.EmulateViewport(920, 920))
	b.settle()
	b.still()
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
		const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(%q, "/home/you/shop");
	})()`, r.cwd))) // a picture has no folder of a test
	words := b.words()
	text, picture := filepath.Join("testdata", "page.txt"), filepath.Join("..", "..", "..", "docs", "use", "page.png")
	if *update {
		pixels, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := cmp.Or(os.WriteFile(picture, pixels, 0o644), os.WriteFile(text, []byte(words), 0o644)); err != nil {
			t.Fatal(err)
		}
	} else if want, err := os.ReadFile(text); err != nil || string(want) != words {
		t.Errorf("docs/use/page.png is older than the page, %v: make it again with -update; it says\n%s\nand the page\n%s", err, want, words)
	}
	// A phone shows the whole task.
	b.do(chromedp.EmulateViewport(390, 852))
	if !eval[bool](b, `(() => { const t = document.querySelector(".task"); return t.scrollWidth <= t.clientWidth && t.scrollHeight <= t.clientHeight + 1 })()`) {
		t.Error("the task is cut")
	}
	// Deny and Stop are on its first screen, and no button that approves is as wide as it is.
	b.do(chromedp.Evaluate[chromedp.Void](`scrollTo({ top: 0, behavior: "instant" })`))
	b.still()
	if !eval[bool](b, `[...document.querySelectorAll(".ask button.no")].length === 2 && [...document.querySelectorAll(".ask button.no")].every((b) => b.getBoundingClientRect().bottom <= innerHeight)`) {
		t.Error("Deny or Stop is below the first screen")
	}
	if !eval[bool](b, `[...document.querySelectorAll(".ask button.yes")].every((b) => b.getBoundingClientRect().width < innerWidth * .7)`) {
		t.Error("what approves is a wall")
	}
	if *update {
		pixels, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err := cmp.Or(err, os.WriteFile(filepath.Join("..", "..", "..", "docs", "use", "page-phone.png"), pixels, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	b.click("Deny")
	if got := get(t, answer); got != "Done." {
		t.Errorf("the call was answered %q", got)
	}
}
