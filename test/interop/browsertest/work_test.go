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

// TestWork shows why a file is asked about, what a command prints while it runs and when it has failed, and each question once.
func TestWork(t *testing.T) {
	const patch = "*** Begin Patch\n*** Add File: .vscode/tasks.json\n+{}\n*** End Patch\n"
	// What runs is no login shell: a profile of the machine's user may take a minute.
	const prints = `i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo "ok   pkg/$i"; done; echo "approved by page"; printf '10%%\r57%%'; until [ -e go ]; do sleep .1; done; printf '\r100%%\nfatal: it failed\n'; exit 3`
	r, _ := work(t, map[string]any{"approval_policy": "untrusted", "sandbox_mode": "danger-full-access"},
		providertest.Call(providertest.Tool("1", "apply_patch", map[string]any{"input": patch})),
		providertest.Call(providertest.Shell("2", "bash", "-c", prints)),
		providertest.Call(providertest.Shell("3", "bash", "-lc", "npm publish 'a b'")), providertest.Say("It failed."))
	b := r.open(t)
	answer := r.call("Try it.")
	b.see(`isOpen(selected) && selected.view.kind === "patch"`)
	text := eval[string](b, `document.body.innerText`)
	for _, once := range []string{"other programs run it or obey it", "New file", "Stop the turn"} {
		if n := strings.Count(text, once); n != 1 {
			t.Errorf("%q stands %d times on\n%s", once, n, text)
		}
	}
	b.look("why")
	b.click("Approve once")
	b.see(`isOpen(selected) && selected.view.command.startsWith("bash -c")`)
	b.click("Approve once")
	printed := func() string {
		return eval[string](b, `[...document.querySelectorAll(".log .printed")].at(-1).textContent`)
	}
	b.see(`document.querySelector(".log .printed")?.textContent.endsWith("57%\n") && /running .*\d+s/.test(document.querySelector(".now").textContent)`)
	if got, want := printed(), "ok   pkg/40\napproved by page\n57%\n"; !strings.HasSuffix(got, want) || strings.Count(got, "\n") != 12 {
		t.Errorf("a running command has printed\n%s", got)
	}
	b.look("running")
	if err := os.WriteFile(filepath.Join(r.cwd, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.see(`isOpen(selected) && selected.view.command === "npm publish 'a b'"`)
	if got, want := printed(), "approved by page\n100%\nfatal: it failed\n"; !strings.HasSuffix(got, want) || !strings.HasPrefix(got, "ok   pkg/1\n") || strings.Count(got, "\n") != 12 {
		t.Errorf("a command has printed\n%s", got)
	}
	b.look("failed")
	b.click("Deny")
	get(t, answer)
	b.see(`questions.size === 0 && [...document.querySelectorAll(".log .entry")].some((e) => e.textContent === "codex-mcp:\n")`)
	b.look("after")
}
