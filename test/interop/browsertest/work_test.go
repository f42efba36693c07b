package browsertest

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// work starts a server with the native engine. The tasks are in a folder, and the model says these turns. The
// client cannot be asked.
func work(t *testing.T, overrides map[string]any, turns ...providertest.Turn) (*rig, *providertest.Server) {
	t.Helper()
	model := providertest.New(turns...)
	t.Cleanup(model.Close)
	all := map[string]any{
		"model": "gpt-5-codex", "model_provider": "local", "model_providers.local.name": "local", "model_providers.local.base_url": model.BaseURL(),
	}
	maps.Copy(all, overrides)
	e, err := native.New(&native.Options{CodexHome: t.TempDir(), Overrides: all})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	r := start(t, e, nil)
	if r.cwd, err = os.MkdirTemp("", "shop"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(r.cwd) })
	return r, model
}

// TestApprove decides in each way by the mouse, with a real engine: what is approved runs, and what is not does
// not. The last lines of the turn say so.
func TestApprove(t *testing.T) {
	touch := func(name string) providertest.Turn { return providertest.Call(providertest.Shell(name, "touch", name)) }
	r, model := work(t, map[string]any{"approval_policy": "untrusted", "sandbox_mode": "danger-full-access"},
		touch("one"), touch("two"), touch("two"), touch("three"), providertest.Say("It is made."), touch("four"))
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(r.cwd, name))
		return err == nil
	}
	b := r.open(t)
	b.look("empty")
	answer := r.call("Make the files.")
	b.see(`document.title.startsWith("(1)") && document.querySelector(".ask .command").textContent === "touch one"`)
	if exists("one") {
		t.Error("the command ran before it was approved")
	}
	b.click("Approve once")
	b.see(`document.querySelector(".ask .command").textContent === "touch two"`)
	b.click("Approve for the session") // and so the third is no question
	b.see(`document.querySelector(".ask .command").textContent === "touch three"`)
	b.settle()
	b.write(".ask input", "use <b>make</b> “instead”")
	b.click("Deny")
	if got := get(t, answer); got != "It is made." || !exists("one") || !exists("two") || exists("three") {
		t.Errorf("the call was answered %q", got)
	}
	requests := model.Requests()
	if got := requests[len(requests)-1].LastToolOutput(); !strings.Contains(got, "use <b>make</b> “instead”") {
		t.Errorf("the model was told %q", got)
	}
	b.see(`document.title.startsWith("Approvals") && document.querySelector(".ask") === null`)
	for _, line := range []string{"approved by page", "use <b>make</b> “instead”", "It is made."} {
		b.see(`document.querySelector(".log").textContent.includes("` + line + `")`)
	}
	b.look("approved")

	answer = r.call("Make another.")
	b.see(`questions.size === 1`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#conversations .no")[0].click()`)) // of the conversation
	if got := get(t, answer); !strings.HasPrefix(got, "Turn aborted") || exists("four") {
		t.Errorf("the call was answered %q", got)
	}
}
