package browsertest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/page"
)

// workshop is a rig with the native engine, a scripted model and a folder to
// work in; the client cannot be asked.
type workshop struct {
	*rig
	model  *providertest.Server
	folder string
}

func newWorkshop(t *testing.T, turns ...providertest.Turn) *workshop {
	t.Helper()
	return newWorkshopWith(t, nil, nil, turns...)
}

// newWorkshopWith is newWorkshop with a client that can be asked, and options of the page.
func newWorkshopWith(t *testing.T, answer answer, po *page.Options, turns ...providertest.Turn) *workshop {
	t.Helper()
	w := &workshop{model: providertest.New(turns...), folder: t.TempDir()}
	t.Cleanup(w.model.Close)
	e, err := native.New(&native.Options{CodexHome: t.TempDir(), Overrides: map[string]any{
		"model":                          "scripted",
		"model_provider":                 "local",
		"model_providers.local.name":     "local",
		"model_providers.local.base_url": w.model.BaseURL(),
		"approval_policy":                "untrusted",
		"sandbox_mode":                   "danger-full-access",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	w.rig = startWith(t, e, answer, &codexserver.Options{}, po)
	w.cwd = w.folder
	return w
}

// exists reports whether there is a file in the folder.
func (w *workshop) exists(name string) bool {
	_, err := os.Stat(filepath.Join(w.folder, name))
	return err == nil
}

// The last result that a tool returned to the model.
func (w *workshop) told() string {
	requests := w.model.Requests()
	return requests[len(requests)-1].LastToolOutput()
}

func TestApprove(t *testing.T) {
	w := newWorkshop(t, providertest.Call(providertest.Shell("1", "touch", "made")), providertest.Say("It is made."))
	b := w.open(t)
	b.look("empty")
	answer := w.call("Make the file.")
	b.see(`document.title.startsWith("(1)")`)
	b.see(`document.querySelector(".ask .command").textContent === "touch made"`)
	if w.exists("made") {
		t.Error("the command ran before it was approved")
	}
	b.click("Approve once")
	if got := get(t, answer); got != "It is made." || !w.exists("made") {
		t.Errorf("the call was answered %q", got)
	}
	b.see(`document.title.startsWith("Approvals") && document.querySelector(".ask") === null`)
	b.see(`document.querySelector(".timeline").innerText.includes("Approved once on the page")`)
	b.see(`document.querySelector(".timeline .is-agent").innerText.includes("It is made.")`)
	b.look("approved")
}

func TestDenyWithAWord(t *testing.T) {
	w := newWorkshop(t, providertest.Call(providertest.Shell("1", "touch", "made")), providertest.Say("Then not."))
	b := w.open(t)
	answer := w.call("Make the file.")
	b.see(`questions.size === 1`)
	b.settle()
	b.write(".ask input", "use <b>make</b> “instead”")
	b.click("Deny")
	if got := get(t, answer); got != "Then not." || w.exists("made") {
		t.Errorf("the call was answered %q", got)
	}
	if got := w.told(); !strings.Contains(got, "use <b>make</b> “instead”") {
		t.Errorf("the model was told %q", got)
	}
	b.see(`document.querySelector(".timeline").innerText.includes("Denied on the page: “use <b>make</b> “instead””")`)
}

func TestApproveForTheSession(t *testing.T) {
	again := providertest.Call(providertest.Shell("2", "touch", "made"))
	w := newWorkshop(t, providertest.Call(providertest.Shell("1", "touch", "made")), again, providertest.Say("Twice."))
	b := w.open(t)
	answer := w.call("Make the file twice.")
	b.see(`questions.size === 1`)
	b.click("Approve for the session")
	if got := get(t, answer); got != "Twice." || !w.exists("made") {
		t.Errorf("the call was answered %q", got)
	}
	b.see(`document.querySelectorAll(".timeline .is-command").length === 2 && document.querySelectorAll(".timeline .is-question").length === 1`)
}

func TestStopAQuestion(t *testing.T) {
	w := newWorkshop(t, providertest.Call(providertest.Shell("1", "touch", "made")))
	b := w.open(t)
	answer := w.call("Make the file.")
	b.see(`questions.size === 1`)
	b.click("Stop the turn")
	if got := get(t, answer); !strings.HasPrefix(got, "Turn aborted") || w.exists("made") {
		t.Errorf("the call was answered %q", got)
	}
	b.see(`document.querySelector(".timeline .is-end").innerText.includes("Stopped")`)
}

func TestStopACommand(t *testing.T) {
	w := newWorkshop(t, providertest.Call(providertest.Shell("1", "sh", "-c", "echo begun; sleep 600")))
	b := w.open(t)
	answer := w.call("Wait for long.")
	b.see(`questions.size === 1`)
	b.click("Approve once")
	b.see(`document.querySelector(".timeline .is-command")?.innerText.includes("begun")`)
	b.see(`questions.size === 0`)
	b.click("Stop the turn")
	if got := get(t, answer); !strings.HasPrefix(got, "Turn aborted") {
		t.Errorf("the call was answered %q", got)
	}
	b.see(`document.querySelector(".conversation .state").innerText === "idle"`)
}

const patch = `*** Begin Patch
*** Update File: shop/cart.go
@@
 func Total(items []Item) int {
 	sum := 0
 	for _, item := range items {
-		sum += item.Price
+		sum += item.Price * item.Count
 	}
 	return sum
*** Add File: shop/cart_test.go
+package shop
+
+import "testing"
+
+func TestTotal(t *testing.T) {
+	if got := Total([]Item{{Price: 2, Count: 3}}); got != 6 {
+		t.Errorf("got %d, want 6", got)
+	}
+}
*** Delete File: shop/old.txt
*** End Patch
`

func TestPatch(t *testing.T) {
	w := newWorkshop(t, providertest.Call(providertest.Shell("1", "apply_patch", patch)), providertest.Say("The total counts each item now."))
	for name, text := range map[string]string{
		"shop/cart.go":  "package shop\n\nfunc Total(items []Item) int {\n\tsum := 0\n\tfor _, item := range items {\n\t\tsum += item.Price\n\t}\n\treturn sum\n}\n",
		"shop/old.txt":  "nobody reads this\n",
		"shop/item.txt": "stays\n",
	} {
		name = filepath.Join(w.folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b := w.open(t)
	answer := w.call("The cart's total ignores how many there are of an item. Mend that, with a test.")
	b.see(`questions.size === 1 && document.querySelectorAll(".ask .file").length === 3`)
	b.see(`[...document.querySelectorAll(".ask .diff .plus")].some((line) => line.textContent === "+\t\tsum += item.Price * item.Count\n")`)
	b.see(`[...document.querySelectorAll(".ask .diff .minus")].some((line) => line.textContent === "-nobody reads this\n")`)
	b.look("patch")
	b.click("Approve once")
	if got := get(t, answer); got != "The total counts each item now." || w.exists("shop/old.txt") || !w.exists("shop/cart_test.go") {
		t.Errorf("the call was answered %q", got)
	}
	b.see(`document.querySelector(".timeline .is-patch").innerText.includes("applied")`)
	b.see(`document.querySelector(".timeline .is-patch code").innerText === "shop/cart.go"`)
	b.look("patched")
}
