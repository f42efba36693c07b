package browsertest

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// The page that codex-mcp log show writes of a hostile turn runs nothing and loads nothing, shows every character, and
// stays small.
func TestRecord(t *testing.T) {
	hostile := slices.Clone(hostile)
	for i := range hostile { // a question about other texts is not recorded, and is refused
		hostile[i] = strings.ToValidUTF8(hostile[i], "\ufffd")
	}
	argv := append([]string{"bash", "-c", "rm -rf /"}, hostile...)
	all := strings.Join(hostile, "\n")
	changes := map[string]protocol.FileChange{}
	for _, s := range hostile {
		changes["/work/"+s] = protocol.FileChange{Add: &protocol.FileContent{Content: s + "\nEND" + "\n"}}
	}
	changes["/work/zlong"] = protocol.FileChange{Add: &protocol.FileContent{Content: strings.Repeat(all+"\n", 5<<20/len(all))}}
	e := rawEngine(func(ctx context.Context, host engine.Host) error {
		host.ApproveExec(ctx, protocol.ExecApprovalRequest{CallID: "1", Command: argv, Cwd: "/work/" + all, Reason: all})
		host.Emit(protocol.ExecCommandBegin{CallID: "1", Command: argv, Cwd: all})
		host.Emit(protocol.ExecCommandEnd{CallID: "1", AggregatedOutput: strings.Repeat(all, 5<<20/len(all)), ExitCode: 7})
		host.ApprovePatch(ctx, protocol.PatchApprovalRequest{CallID: "2", Changes: changes, Cwd: "/work", Reason: all})
		host.Emit(protocol.PatchApplyBegin{CallID: "2", Changes: changes})
		host.Emit(protocol.PatchApplyEnd{CallID: "2", Stderr: all})
		host.Emit(protocol.MCPToolCallBegin{CallID: "3", Invocation: protocol.MCPInvocation{Server: all, Tool: all}})
		host.Emit(protocol.MCPToolCallEnd{CallID: "3", Result: protocol.MCPToolCallResult{Err: &all}})
		host.Emit(protocol.BackgroundEvent{Refused: &protocol.Refused{Command: argv, Cwd: all, Reason: all}})
		return nil
	})
	dir := t.TempDir()
	record, page, program := filepath.Join(dir, "log"), filepath.Join(dir, "page.html"), filepath.Join(dir, "codex-mcp")
	var lines bytes.Buffer
	rules := approval.Rules{Decide: func(context.Context, *approval.Request) (elicit.Outcome, bool) {
		return elicit.Outcome{Decision: elicit.Denied, Feedback: all}, true
	}}
	r := startWith(t, e, nil, &codexserver.Options{Record: &lines, Rules: rules}, nil)
	get(t, r.call("go"))
	if err := os.WriteFile(record, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", program, "./codexserver/cmd/codex-mcp")
	build.Dir = "../../.." // the module of the program
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program, "log", "show", "--html", page, record).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(page)
	if err != nil || info.Size() > 4<<20 {
		t.Fatalf("%v, %v", info, err)
	}
	b := newTab(t)
	b.visit("file://" + page)
	if got := eval[string](b, `String(window.pwned) + " " + document.title`); got != "undefined Record of approvals" {
		t.Errorf("a script ran: %s", got)
	}
	if got := eval[string](b, `[...new Set([...document.querySelectorAll("*")].map((e) => e.localName))].sort().join(" ")`); got != "body h1 head html meta p pre section style title" {
		t.Errorf("the elements are %s", got)
	}
	if got := eval[int](b, `performance.getEntriesByType("resource").length`); got != 0 {
		t.Errorf("the page has loaded %d resources", got)
	}
	// A script that is put there all the same does not run.
	if got := eval[string](b, `(() => { const s = document.createElement("script"); s.textContent = "window.pwned = 1"; document.body.append(s); s.remove(); return String(window.pwned) })()`); got != "undefined" {
		t.Errorf("the policy of the page lets a script run: %s", got)
	}
	text := eval[string](b, `document.body.innerText`)
	for _, want := range []string{
		elicit.ShowCommand(argv), `\u{202e}`, `\x1b[2J`, "exit code 7", "denied by rule", "bytes are left out here; the record has them", "refused without a question", "=== /work/" + elicit.OneLine(hostile[0], 0), "+END",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("the page does not show %q, but\n%.3000q", want, text)
		}
	}
	if i := strings.IndexFunc(text, func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x202a && r <= 0x202e || r == 0x200b
	}); i >= 0 {
		t.Errorf("the page shows a character that nobody sees: %q", text[max(0, i-20):i+20])
	}
	// Nothing of it is hidden by its style.
	if got := eval[int](b, `[...document.querySelectorAll("p, pre")].filter((e) => { const s = getComputedStyle(e), r = e.getBoundingClientRect(); return e.textContent && (s.display === "none" || s.visibility !== "visible" || s.opacity !== "1" || r.width < 100 || r.height < 10 || r.left < 0 || s.color === s.backgroundColor) }).length`); got != 0 {
		t.Errorf("%d parts are hidden", got)
	}
}
