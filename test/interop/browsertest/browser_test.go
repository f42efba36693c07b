package browsertest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/test/interop/internal/chromium"
)

var (
	screenshots = flag.String("screenshots", "", "folder to write screenshots to")
	update      = flag.Bool("update", false, "make the pictures of docs and the text of testdata again")
)

// browser is the one Chromium of all tests; each test has tabs of its own in a
// context of its own, as private windows have.
var browser context.Context

func TestMain(m *testing.M) {
	native.Main() // this may be a keeper
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	started, stop, err := chromium.Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "browsertest:", err)
		return 1
	}
	defer stop()
	browser = started
	return m.Run()
}

// A rig is a server with an engine, its page, and a client that calls it.
type rig struct {
	t      *testing.T
	page   *page.Page
	client *client.Client
	cwd    string // of the tasks
}

// answer answers a question in the client.
type answer func(context.Context, *client.Question) elicit.Outcome

// start serves e. The client cannot be asked unless answer is given.
func start(t *testing.T, e engine.Engine, answer answer) *rig {
	t.Helper()
	p, err := page.Listen(nil)
	if err != nil {
		t.Fatal(err)
	}
	so := &codexserver.Options{Desk: p, Home: t.TempDir()}
	c, err := client.Start(t.Context(), &client.Options{Server: codexserver.New(e, so), Protocol: mcptypes.ProtocolVersion, Ask: answer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	})
	return &rig{t: t, page: p, client: c}
}

// call hands the engine a task and returns where its answer will be.
func (r *rig) call(task string) <-chan string {
	answer := make(chan string, 1)
	go func() {
		result, err := r.client.Run(context.Background(), client.Task{Prompt: task, Cwd: r.cwd})
		if err != nil {
			answer <- "call: " + err.Error()
			return
		}
		answer <- result.Answer
	}()
	return answer
}

// A tab is one page of the browser.
type tab struct {
	t      *testing.T
	ctx    context.Context
	mu     sync.Mutex
	faults []string // of the page's script
}

// wait bounds each step. Only a failing test reaches it.
const wait = time.Minute

// newTab opens an empty tab in a private window; the page's faults fail the test.
func newTab(t *testing.T) *tab {
	t.Helper()
	bounded, stop := context.WithTimeout(browser, 5*time.Minute) // so that no test waits for a tab for ever
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(bounded, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil { // makes the tab, which lives as long as this context
		t.Fatal(err)
	}
	err := chromedp.Listen(ctx, func(event any) {
		if fault, ok := event.(*runtime.EventExceptionThrown); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.faults = append(b.faults, fmt.Sprint(fault.ExceptionDetails.Text, " ", fault.ExceptionDetails.Exception))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, fault := range b.faults {
			t.Errorf("the page's script failed: %s", fault)
		}
	})
	b.do(chromedp.EmulateViewport(1200, 900))
	return b
}

// open opens the page by a fresh link.
func (r *rig) open(t *testing.T) *tab {
	t.Helper()
	b := newTab(t)
	b.visit(r.page.Link())
	b.see(`document.querySelector("#link").dataset.state === "live"`)
	return b
}

// visit goes to an address, also one that differs in its fragment alone.
func (b *tab) visit(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(address))
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, wait)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// eval returns what an expression is, awaited.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := tryEval[T](b, expression)
	if err != nil {
		b.t.Fatalf("browser: %s: %v", expression, err)
	}
	return v
}

func tryEval[T any](b *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, wait)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// see waits until an expression is true, also over a reload of the page.
func (b *tab) see(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, wait)
	defer cancel()
	watch := fmt.Sprintf(`new Promise((seen) => {
		const isSo = () => { try { return %s } catch (e) { last = e } } // what is looked at may not be there yet
		let last, began = performance.now()
		const look = () => isSo() ? seen("") : performance.now() - began > 1000 ? seen("not yet: " + last) : setTimeout(look, 20)
		look()
	})`, expression)
	for {
		why, err := chromedp.Run(ctx, chromedp.Evaluate[string](watch, chromedp.EvalAwaitPromise))
		switch {
		case err == nil && why == "":
			return
		case ctx.Err() != nil:
			b.t.Fatalf("never true: %s (%s, %v); the page is:\n%s", expression, why, err, eval[string](b, `document.body.innerText`))
		}
	}
}

// settle waits until the page takes what is pressed for an answer.
func (b *tab) settle() {
	b.t.Helper()
	b.see(`performance.now() - settledAt > 500 && (!selected || performance.now() - selected.since > 500)`)
}

// press presses keys, one after another. As on a real keyboard, a page that
// takes the key for itself keeps it from typing.
func (b *tab) press(keys string) {
	b.t.Helper()
	for _, key := range keys {
		events := kb.Encode(key)
		down, up := *events[0], *events[len(events)-1]
		for _, event := range events {
			if event.Type == kb.KeyChar {
				down.Text = event.Text
			}
		}
		for _, event := range []input.DispatchKeyEventParams{down, up} {
			if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, event); err != nil {
				b.t.Fatalf("browser: key %q: %v", key, err)
			}
		}
	}
}

// click clicks the first button that begins with these words, where it is once it no longer moves.
func (b *tab) click(words string) {
	b.t.Helper()
	b.settle()
	button := fmt.Sprintf(`//button[starts-with(normalize-space(.), %q)]`, words)
	eval[bool](b, fmt.Sprintf(`(async () => {
		const place = () => JSON.stringify(document.evaluate(%q, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE).singleNodeValue?.getBoundingClientRect())
		for (let before; before !== place() || !before;) {
			before = place()
			await new Promise((look) => setTimeout(look, 100))
		}
		return true
	})()`, button))
	for again := true; again; { // the page asks for it when something has moved all the same
		b.do(chromedp.Click(chromedp.Search(button), chromedp.NodeVisible))
		var err error
		again, err = tryEval[bool](b, `(() => {
			const t = document.querySelector("#toast"), again = t !== null && t.textContent.endsWith("Please press again.")
			if (again) t.textContent = ""
			return again
		})()`)
		if err != nil && !strings.Contains(err.Error(), "navigated") { // which some buttons do
			b.t.Fatalf("browser: after a click on %q: %v", words, err)
		}
		if again {
			b.settle()
		}
	}
}

// write types into a field.
func (b *tab) write(field, text string) {
	b.t.Helper()
	b.do(chromedp.SendKeys(chromedp.CSS(field), text))
}

// get asks for an answer within bounds.
func get[T any](t *testing.T, answer <-chan T) T {
	t.Helper()
	select {
	case v := <-answer:
		return v
	case <-time.After(wait):
		t.Fatal("the call was not answered")
		panic("not reached")
	}
}

// faintText is what text has less contrast than 4.5 to 1 (WCAG 2.2, 1.4.3). What is written in an
// empty field is text.
const faintText = `(() => {
	const parse = (color) => color.match(/[\d.]+/g).map(Number)
	const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0)
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const c = parse(getComputedStyle(e).backgroundColor)
			if (c.length === 3 || c[3] === 1) return c
		}
		return [255, 255, 255]
	}
	const faint = []
	for (const e of document.querySelectorAll("body *")) {
		const text = e.placeholder || [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())
		if (!text || !e.checkVisibility() || e.closest(":disabled, kbd")) continue
		const style = getComputedStyle(e, e.placeholder && "::placeholder"), back = behind(e)
		let opacity = e.placeholder ? +style.opacity : 1
		for (let p = e; p; p = p.parentElement) opacity *= getComputedStyle(p).opacity
		const a = light(parse(style.color).map((v, i) => v * opacity + back[i] * (1 - opacity))), b = light(back)
		if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) faint.push(e.outerHTML.slice(0, 120))
	}
	return faint
})()`

// still waits for the end of all animations.
func (b *tab) still() {
	b.t.Helper()
	eval[bool](b, `Promise.all(document.getAnimations().map((a) => a.finished)).then(() => true)`)
}

// nameless lists what the keyboard reaches and a screen reader has no name for.
func (b *tab) nameless() []string {
	b.t.Helper()
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		b.t.Fatal(err)
	}
	var all []string
	for _, n := range tree.Nodes {
		focusable := slices.ContainsFunc(n.Properties, func(p *accessibility.Property) bool { return p.Name == "focusable" && string(p.Value.Value) == "true" })
		if focusable && !n.Ignored && (n.Name == nil || string(n.Name.Value) == `""`) {
			all = append(all, string(n.Role.Value))
		}
	}
	return all
}

// look writes screenshots of the whole page, if any are wanted: two widths in
// two schemes. It also checks that nothing is wider than the screen, that
// text can be read, and that what the keyboard reaches has a name.
func (b *tab) look(name string) {
	b.t.Helper()
	if parts := b.nameless(); len(parts) > 0 {
		b.t.Errorf("%s: without a name for screen readers: %q", name, parts)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1200, 380} {
			b.scheme(scheme)
			b.do(chromedp.EmulateViewport(width, 900))
			b.still()
			if !eval[bool](b, `document.scrollingElement.scrollWidth <= innerWidth`) {
				b.t.Errorf("%s: wider than %d pixels", name, width)
			}
			if faint := eval[[]string](b, faintText); len(faint) > 0 {
				b.t.Errorf("%s: text in %s with too little contrast: %q", name, scheme, faint)
			}
			if *screenshots == "" {
				continue
			}
			picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
			if err != nil {
				b.t.Fatal(err)
			}
			file := filepath.Join(*screenshots, fmt.Sprintf("%s-%s-%d.png", name, scheme, width))
			if err := os.WriteFile(file, picture, 0o644); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.do(chromedp.EmulateViewport(1200, 900))
}

// scheme makes the user prefer "light" or "dark".
func (b *tab) scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}
