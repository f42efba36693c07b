package browsertest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// asking is an engine that asks for a command per line of the task, one after
// another, and says what was decided.
var asking = engine.TurnFunc(func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
	var said []string
	for command := range strings.Lines(in[0].Text) {
		out := host.Ask(ctx, approval.Command{
			CallID: "1", Command: strings.Fields(command), Cwd: "/work/shop",
		})
		said = append(said, strings.TrimSpace(string(out.Decision)+" "+out.Feedback))
	}
	host.Emit(protocol.AgentMessage{Message: strings.Join(said, "\n")})
	return ctx.Err()
})

// Everything by the keyboard alone, and no key counts for a question that has
// only just come.
func TestKeyboard(t *testing.T) {
	r := start(t, asking, nil)
	b := r.open(t)
	answer := r.call("one\ntwo\nthree\nfour\nfive\nsix")
	command := func(name string) {
		t.Helper()
		b.see(fmt.Sprintf(`isOpen(selected) && selected.view.command === %q`, name))
	}

	command("one")
	b.do(chromedp.Evaluate[chromedp.Void](`settledAt = performance.now() + 60000`)) // however slow the test is
	b.press("y")                                                                    // this may have been meant for anything
	b.see(`!document.querySelector("#toast").hidden`)
	if eval[int](b, `questions.size`) != 1 {
		t.Error("a key counted for a question that had just come")
	}
	b.do(chromedp.Evaluate[chromedp.Void](`settledAt = 0`))
	b.settle()
	b.press("y")
	command("two")
	b.settle()
	b.press("a")
	command("three")
	b.do(chromedp.Evaluate[chromedp.Void](`selected.word.focus()`))
	b.press("y a n s") // words now
	b.press(kb.Escape)
	b.see(`document.activeElement === selected.node`)
	b.press("n")
	command("four")
	b.settle()

	// The same by Tab: from the card to its buttons, in the order of sight.
	b.do(chromedp.Evaluate[chromedp.Void](`selected.node.focus()`))
	var order []string
	for range 6 {
		b.press(kb.Tab)
		order = append(order, eval[string](b, `document.activeElement.matches("pre, input") ? document.activeElement.tagName : document.activeElement.firstChild.data`))
		if !eval[bool](b, `getComputedStyle(document.activeElement).outlineStyle === "solid" && getComputedStyle(document.activeElement).outlineColor === getComputedStyle(document.activeElement).color`) {
			t.Errorf("the focus on %s is not seen", order[len(order)-1])
		}
	}
	if got, want := strings.Join(order, ", "), "PRE, Approve once, Approve for the session, INPUT, Deny, Stop the turn"; got != want {
		t.Errorf("Tab goes over %s, want %s", got, want)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`selected.node.querySelector("button.yes").focus()`))
	b.press(kb.Enter)
	command("five")
	b.settle()

	b.press("n")
	command("six")
	b.settle()
	b.press("s")
	if got := get(t, answer); !strings.HasPrefix(got, "approved\napproved_for_session\ndenied y a n s\napproved\ndenied\nabort") {
		t.Errorf("the engine was told %q", got)
	}
}

// A key acts on the marked question alone, and only while it is on the screen.
func TestKeysNeedTheQuestionInSight(t *testing.T) {
	long := strings.Repeat("word ", 2000)
	r := start(t, asking, nil)
	b := r.open(t)
	first := r.call(long)
	b.see(`questions.size === 1`)
	second := r.call("two " + long)
	b.see(`questions.size === 2`)
	if !eval[bool](b, `selected === [...questions.values()][0]`) {
		t.Error("a new question has taken the mark")
	}
	b.settle()
	b.do(chromedp.Evaluate[chromedp.Void](`scrollTo({ top: document.body.scrollHeight, behavior: "instant" })`))
	b.press("y")
	b.see(`document.querySelector("#toast").textContent.startsWith("Here is the question")`)
	if eval[int](b, `open().length`) != 2 {
		t.Error("a question was answered that was not on the screen")
	}
	b.press("j")
	b.see(`selected === [...questions.values()][1] && visible(selected)`)
	b.press("k")
	b.see(`selected === [...questions.values()][0] && visible(selected)`)
	b.settle()
	b.press("s")
	get(t, first)
	b.see(`selected === [...questions.values()][0] && selected.view.command.startsWith("two") && visible(selected)`)
	b.settle()
	b.press("s")
	get(t, second)
}

// A question that the client answers stays where it is for a moment, with the decision, and the mark does not move to
// another meanwhile.
func TestAnsweredElsewhere(t *testing.T) {
	release := make(chan elicit.Decision)
	r := start(t, asking, func(ctx context.Context, _ *client.Question) elicit.Outcome {
		select {
		case decision := <-release:
			return elicit.Outcome{Decision: decision}
		case <-ctx.Done():
			return elicit.Outcome{}
		}
	})
	b := r.open(t)
	other := r.open(t)
	first := r.call("git push origin main")
	b.see(`questions.size === 1`)
	b.settle()
	b.do(chromedp.Evaluate[chromedp.Void](`moment = 600000`)) // however slow the test is
	release <- elicit.Denied
	if got := get(t, first); got != "denied" {
		t.Errorf("the engine was told %q", got)
	}
	b.see(`document.querySelector(".ask.settled .outcome").innerText.includes("Denied in the client")`)
	second := r.call("git status")
	b.see(`open().length === 1 && questions.size === 2`)
	if !eval[bool](b, `!isOpen(selected)`) {
		t.Error("the mark has gone on by itself")
	}
	b.settle()
	b.press("y")
	b.see(`document.querySelector("#toast").textContent.startsWith("This question is answered")`)
	b.look("settled")
	b.do(chromedp.Evaluate[chromedp.Void](`moment = 3000`))

	// Another page answers.
	other.see(`open().length === 1`)
	other.press("j")
	other.settle()
	other.press("y")
	if got := get(t, second); got != "approved" {
		t.Errorf("the engine was told %q", got)
	}
	b.see(`[...document.querySelectorAll(".outcome")].some((o) => o.innerText.includes("Approved once on the page"))`)
	b.see(`questions.size === 1`) // the first one, whose moment is long
}

// A reload, and a tab that is opened later, show the same; only the tab that
// was let in can.
func TestReload(t *testing.T) {
	r := start(t, asking, nil)
	b := r.open(t)
	if got := eval[string](b, `location.href`); strings.Contains(got, "#") {
		t.Errorf("the secret stays in the address: %s", got)
	}
	answer := r.call("git push")
	b.see(`questions.size === 1`)
	b.do(chromedp.Reload())
	b.see(`open().length === 1 && live()`)
	b.click("Approve once")
	if got := get(t, answer); got != "approved" {
		t.Errorf("the engine was told %q", got)
	}
	b.see(`document.querySelector(".log")?.textContent.includes("approved by page")`)
	b.do(chromedp.Reload())
	b.see(`document.querySelector(".log")?.textContent.includes("approved by page")`)

	// The oldest of too many tabs gives way, says so, and can come back.
	for range 4 {
		r.open(t)
	}
	b.see(`document.querySelector("#link").innerText.includes("Open in newer tabs")`)
	b.click("Use this one")
	b.see(`typeof live === "function" && live()`)

	// The page says that it is cut off, and offers no buttons.
	later := r.call("git fetch")
	b.see(`open().length === 1`)
	b.do(chromedp.Evaluate[chromedp.Void](`show("off", gone)`))
	b.see(`selected.fields.disabled && document.querySelector("#nothing").hidden`)
	if got := eval[string](b, `document.title + "|" + document.querySelector("#questions-title").textContent + "|" + document.querySelector(".now").textContent`); got != "Approvals · codex-mcp|To decide|" {
		t.Errorf("without a server the page says %q", got)
	}
	b.look("cut-off")

	// When the server has ended the page says so, and holds nothing any more.
	if err := r.page.Close(); err != nil {
		t.Error(err)
	}
	get(t, later)
	b.see(`document.querySelector("#door").innerText.startsWith("codex-mcp has ended\n") && document.querySelector(".ask, .log") === null`)
	b.look("ended")
}
