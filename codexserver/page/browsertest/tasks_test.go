package browsertest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/page"
)

// modern calls a method as a client of MCP 2026-07-28 that polls tasks.
func (r *rig) modern(method, members string) map[string]any {
	r.t.Helper()
	var result map[string]any
	err := r.client.Call(r.t.Context(), method, json.RawMessage(`{`+members+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`), &result)
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

// awaitTask returns a task that has a status.
func (r *rig) awaitTask(id, status string) map[string]any {
	r.t.Helper()
	for late := time.After(wait); ; {
		v := r.modern("tasks/get", fmt.Sprintf(`"taskId":%q`, id))
		if v["status"] == status {
			return v
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-late:
			r.t.Fatalf("the task is %v", v)
		}
	}
}

// A task, and a turn in the background, are conversations like others: their
// questions are decided on the page, and it stops them.
func TestTaskAndBackground(t *testing.T) {
	r := startWith(t, asking, nil, &codexserver.Options{Home: t.TempDir(), Tasks: codexserver.TaskOptions{Grace: -1}}, nil)
	b := r.open(t)
	id, _ := r.modern("tools/call", `"name":"codex","arguments":{"prompt":"make task"}`)["taskId"].(string)
	b.see(`questions.size === 1 && selected.view.command === "make task"`)
	r.awaitTask(id, "input_required")
	b.click("Approve once")
	if v := fmt.Sprint(r.awaitTask(id, "completed")["result"]); !strings.Contains(v, "approved") {
		t.Errorf("the result of the task is %s", v)
	}
	b.see(`document.querySelector(".timeline").innerText.includes("Approved once on the page")`)

	id, _ = r.modern("tools/call", `"name":"codex","arguments":{"prompt":"stop me"}`)["taskId"].(string)
	b.see(`questions.size === 1 && selected.view.command === "stop me"`)
	b.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".conversation button")].find((button) => button.checkVisibility()).click()`))
	if v, _ := r.awaitTask(id, "completed")["result"].(map[string]any); v["isError"] != true {
		t.Errorf("the result of a task that was stopped is %v", v)
	}

	b.click("Dismiss") // the client was asked too, and its question ended with the turn
	r.modern("tools/call", `"name":"codex","arguments":{"prompt":"behind","background":true}`)
	b.see(`questions.size === 1 && selected.view.command === "behind"`)
	b.click("Approve once")
	if v := fmt.Sprint(r.modern("tools/call", `"name":"codex-wait","arguments":{}`)); !strings.Contains(v, "approved") {
		t.Errorf("codex-wait has %s", v)
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
