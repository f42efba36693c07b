package browsertest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/page"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// A task, and a turn in the background, are conversations like others: their
// questions are decided on the page, and it stops them.
func TestTaskAndBackground(t *testing.T) {
	o := &codexserver.Options{Home: t.TempDir(), Tasks: codexserver.TaskOptions{Grace: -1}}
	r := startWith(t, asking, nil, o, nil)
	c, err := client.Start(t.Context(), &client.Options{
		Server: codexserver.New(asking, o), // with the same desk
		Ask: func(ctx context.Context, _ *client.Question) elicit.Outcome {
			<-ctx.Done() // the page decides
			return elicit.Outcome{}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run := func(prompt string) <-chan client.Result {
		ended := make(chan client.Result, 1)
		go func() {
			result, err := c.Run(t.Context(), client.Task{Prompt: prompt})
			if err != nil || result.Task == "" {
				t.Errorf("%+v, %v", result, err)
			}
			ended <- result
		}()
		return ended
	}
	b := r.open(t)
	made := run("make task")
	b.see(`questions.size === 1 && selected.view.command === "make task"`)
	b.click("Approve once")
	if v := get(t, made); v.Answer != "approved" {
		t.Errorf("the result of the task is %+v", v)
	}
	b.see(`document.querySelector(".timeline").innerText.includes("Approved once on the page")`)

	stopped := run("stop me")
	b.see(`questions.size === 1 && selected.view.command === "stop me"`)
	b.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".conversation button")].find((button) => button.checkVisibility()).click()`))
	if v := get(t, stopped); v.Status != protocol.StatusAborted {
		t.Errorf("the result of a task that was stopped is %+v", v)
	}

	b.click("Dismiss") // the client was asked too, and its question ended with the turn
	if _, err := c.Background(t.Context(), client.Task{Prompt: "behind"}); err != nil {
		t.Error(err)
	}
	b.see(`questions.size === 1 && selected.view.command === "behind"`)
	b.click("Approve once")
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if v, err := c.Wait(ctx); err != nil || len(v) != 1 || v[0].Answer != "approved" {
		t.Errorf("codex-wait has %+v, %v", v, err)
	}
	if eval[bool](b, `!document.querySelector("#elsewhere").hidden`) {
		t.Error("there are tasks of other processes")
	}
}

// The tasks of other processes are listed as text, and have nothing to press.
func TestTasksElsewhere(t *testing.T) {
	var tasks atomic.Value
	tasks.Store([]page.Task{
		{Thread: "01a1f8b7-10f2-78d3-afcb-2a41863eba01", Status: "input_required", Message: `waiting for approval of <img src=x onerror="throw 1">`, Server: "process 4711", Began: 1},
		{Thread: "01a1f8a0-1c2d-7b44-9e21-5d1f0b7a9c33", Status: "completed", Message: "done", Server: "process 4712", Began: 2},
	})
	r := startWith(t, asking, nil, &codexserver.Options{}, &page.Options{Tasks: func() []page.Task { return tasks.Load().([]page.Task) }})
	b := r.open(t)
	b.see(`document.querySelectorAll("#tasks li").length === 2 && !document.querySelector("#elsewhere").hidden`)
	b.see(`document.querySelector("#tasks .said").textContent === 'waiting for approval of <img src=x onerror="throw 1">'`)
	b.see(`document.querySelector("#tasks .state").textContent === "input required"`)
	if n := eval[int](b, `document.querySelectorAll("#elsewhere button, #elsewhere a, #elsewhere img, #elsewhere input").length`); n > 0 {
		t.Errorf("there are %d things to press", n)
	}
	b.look("elsewhere")
	tasks.Store([]page.Task(nil))
	b.see(`document.querySelector("#elsewhere").hidden`)
}
