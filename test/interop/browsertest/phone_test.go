package browsertest

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestPhone scrolls over several questions at the width of a phone. What is read has Deny and Stop in
// sight, and no button is in sight without the command that it is about.
func TestPhone(t *testing.T) {
	r := start(t, asking, nil)
	b := r.open(t)
	b.do(chromedp.EmulateViewport(390, 844))
	const all = 3
	var answers []<-chan string
	for i := range all {
		answers = append(answers, r.call(fmt.Sprintf("terraform apply %d", i)))
		b.see(fmt.Sprintf(`questions.size === %d`, i+1))
	}
	b.settle()
	for top := range 6 {
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`scrollTo({ top: %d, behavior: "instant" })`, 150*top)))
		b.still()
		b.see(`[...document.querySelectorAll(".ask.near")].length > 0`)
		// Its buttons are in sight, of the one that reaches down the furthest.
		b.see(`[...document.querySelectorAll(".ask.near button.no")].slice(-2).every((b) => b.getBoundingClientRect().bottom <= innerHeight)`)
		b.see(`[...document.querySelectorAll(".ask")].every((ask) => {
			const command = ask.querySelector(".command").getBoundingClientRect()
			return [...ask.querySelectorAll("button")].every((b) => { const at = b.getBoundingClientRect(); return at.top >= innerHeight || at.top >= command.bottom })
		})`)
	}
	for i, answer := range answers {
		b.see(fmt.Sprintf(`questions.size === %d && isOpen(selected)`, all-i))
		b.do(chromedp.Evaluate[chromedp.Void](`scrollTo({ top: 0, behavior: "instant" })`))
		b.still()
		b.settle()
		b.press("n")
		if got := get(t, answer); got != "denied" {
			t.Errorf("the engine was told %q", got)
		}
	}
}
