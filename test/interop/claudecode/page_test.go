//go:build claudecode

package claudecode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/codexmcp/codexmcp/test/interop/internal/chromium"
	"github.com/rogpeppe/go-internal/testscript"
)

// link is a link to the approvals page, as the server prints it.
var link = regexp.MustCompile(`http://127\.0\.0\.1:\d+/#[\w-]+`)

// decides answers a question on the approvals page, which it opens on a screen as wide as a phone's, by the newest
// link in Claude Code's log of the server. With "-picture" what the question says goes to the file "page", and its picture to the
// screens.
func (s *stage) decides(ts *testscript.TestScript, args []string) {
	picture := args[0] == "-picture"
	if picture {
		args = args[1:]
	}
	command, button := args[0], args[1]
	var address string
	s.until(ts, "link to the page", func() bool {
		logs, err := filepath.Glob(filepath.Join(s.work, "home", ".cache", "claude-cli-nodejs", "*", "mcp-logs-*codex", "*"))
		ts.Check(err)
		var all []string
		for _, file := range logs { // by time
			text, err := os.ReadFile(file)
			ts.Check(err)
			all = append(all, link.FindAllString(string(text), -1)...)
		}
		if len(all) > s.opened {
			address, s.opened = all[len(all)-1], len(all)
		}
		return address != ""
	})
	browser, stop, err := chromium.Start(s.ctx)
	ts.Check(err)
	defer stop()
	ctx, cancel := context.WithTimeout(browser, time.Minute)
	defer cancel()
	do := func(steps ...chromedp.Action[chromedp.Void]) {
		if err := chromedp.Do(ctx, steps...); err != nil {
			words, _ := chromedp.Run(browser, chromedp.Evaluate[string](`document.body.innerText`))
			ts.Fatalf("the page: %v; it says\n%s", err, words)
		}
	}
	do(
		chromedp.EmulateViewport(390, 700),
		chromedp.Navigate(address),
		chromedp.Poll[chromedp.Void](fmt.Sprintf(`document.querySelector(".ask .command")?.textContent === %q`, command)),
		chromedp.Poll[chromedp.Void](`document.scrollingElement.scrollWidth <= innerWidth`),
		chromedp.Poll[chromedp.Void](`performance.now() - settledAt > 500 && performance.now() - selected.since > 500`),
	)
	if picture {
		words, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector(".ask").innerText`))
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs("page"), []byte(regexp.MustCompile(`\d\d:\d\d(.[AP]M)?`).ReplaceAllString(words, "…")+"\n"), 0o600))
		pixels, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		ts.Check(err)
		ts.Check(os.WriteFile(filepath.Join(s.work, "screens", "page.png"), pixels, 0o644))
	}
	do(
		chromedp.Click(chromedp.Search(fmt.Sprintf(`//button[starts-with(normalize-space(.), %q)]`, button)), chromedp.NodeVisible),
		chromedp.Poll[chromedp.Void](`open().length === 0`), // the answer has arrived; the server may have ended since
	)
}
