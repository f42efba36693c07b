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

// visit is an open approvals page.
type visit struct {
	browser context.Context
	stop    func()
}

// watches waits until the approvals page asks about a command. It opens the page on a screen as wide as a phone's, by the newest
// link in Claude Code's log of the server, if it is not open.
func (s *stage) watches(ts *testscript.TestScript, command string) {
	if s.page == nil {
		s.visit(ts)
	}
	const asks = `open().some((q) => q.node.querySelector(".command").textContent === %q && performance.now() - Math.max(settledAt, q.since) > 500)`
	s.do(ts,
		chromedp.Poll[chromedp.Void](fmt.Sprintf(asks, command)),
		chromedp.Poll[chromedp.Void](`document.scrollingElement.scrollWidth <= innerWidth`),
	)
}

func (s *stage) visit(ts *testscript.TestScript) {
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
		if len(all) > 0 && all[len(all)-1] != s.opened { // which the server may print again
			address = all[len(all)-1]
			s.opened = address
		}
		return address != ""
	})
	browser, stop, err := chromium.Start(s.ctx)
	ts.Check(err)
	s.page = &visit{browser, stop}
	s.do(ts, chromedp.EmulateViewport(390, 700), chromedp.Navigate(address))
}

// do does something on the open page.
func (s *stage) do(ts *testscript.TestScript, steps ...chromedp.Action[chromedp.Void]) {
	ctx, cancel := context.WithTimeout(s.page.browser, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		words, _ := chromedp.Run(s.page.browser, chromedp.Evaluate[string](`document.body.innerText`))
		ts.Fatalf("the page: %v; it says\n%s", err, words)
	}
}

// leave closes the page.
func (s *stage) leave() {
	if s.page != nil {
		s.page.stop()
		s.page = nil
	}
}

// told waits until the open page has no question, and says how it ended.
func (s *stage) told(ts *testscript.TestScript, words string) {
	s.do(ts, chromedp.Poll[chromedp.Void](fmt.Sprintf(`open().length === 0 && document.body.innerText.includes(%q)`, words)))
}

// decides answers a question on the approvals page, and closes it. With "-picture" what the question says goes to the file
// "page", and its picture to the screens.
func (s *stage) decides(ts *testscript.TestScript, args []string) {
	picture := args[0] == "-picture"
	if picture {
		args = args[1:]
	}
	s.watches(ts, args[0])
	defer s.leave()
	if picture {
		words, err := chromedp.Run(s.page.browser, chromedp.Evaluate[string](`document.querySelector(".ask").innerText`))
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs("page"), []byte(regexp.MustCompile(`\d\d:\d\d(.[AP]M)?`).ReplaceAllString(words, "…")+"\n"), 0o600))
		pixels, err := chromedp.Run(s.page.browser, chromedp.CaptureScreenshot())
		ts.Check(err)
		ts.Check(os.WriteFile(filepath.Join(s.work, "screens", "page.png"), pixels, 0o644))
	}
	s.do(ts,
		chromedp.Click(chromedp.Search(fmt.Sprintf(`//button[starts-with(normalize-space(.), %q)]`, args[1])), chromedp.NodeVisible),
		chromedp.Poll[chromedp.Void](`open().length === 0`), // the answer has arrived; the server may have ended since
	)
}
