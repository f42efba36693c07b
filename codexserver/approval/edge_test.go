package approval_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/testenv"
)

// TestNothingHides has the texts at the edges of what is escaped, cut and marked.
func TestNothingHides(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Quotes)
	for text, want := range map[string]string{
		"\u0080": `\u{80}`, "\u0301\u0302": `\u{301}\u{302}`, "a\tb\nc\t": "a\tb\nc\t", "\x1b\u0301\u0302x": `\x1b\u{301}\u{302}x`,
	} {
		if got := elicit.ShowText(text); got != want {
			t.Errorf("%+q: %q, want %q", text, got, want)
		}
	}
	if got := elicit.OneLine("a\nbc\td", 0); got != "a bc d" {
		t.Errorf("one line: %q", got)
	}
	const hidden = "\n(contains hidden characters)"
	exact, over := strings.Repeat("x", 1800), strings.Repeat("x", 1801)
	for _, tt := range []struct {
		exec protocol.ExecApprovalRequest
		want string
		once bool
	}{
		{protocol.ExecApprovalRequest{Command: []string{"a\u200b", "b"}, Cwd: "/w"}, "Allow Codex to run `$'a\\u{200b}' b` in `/w`?" + hidden, false},
		{protocol.ExecApprovalRequest{Command: []string{"ls"}, Cwd: "'w"}, "Allow Codex to run `ls` in `\"'w\"`?", false},
		{protocol.ExecApprovalRequest{Command: []string{"ls"}, Cwd: `"w`}, "Allow Codex to run `ls` in `'\"w'`?", false},
		{protocol.ExecApprovalRequest{Command: []string{"ls"}, Cwd: " w"}, "Allow Codex to run `ls` in `' w'`?", false},
		{protocol.ExecApprovalRequest{Command: []string{"ls"}, Cwd: "w "}, "Allow Codex to run `ls` in `'w '`?", false},
		{protocol.ExecApprovalRequest{Command: []string{"ls"}, Cwd: "/w", Reason: "see https://x.test"},
			"Allow Codex to run `ls` in `/w`?\nReason given by the model: `\"see https://x.test\"`", false},
		{protocol.ExecApprovalRequest{Command: []string{"ls"}, Cwd: "/w", Reason: "see www.x.test"},
			"Allow Codex to run `ls` in `/w`?\nReason given by the model: `\"see www.x.test\"`", false},
		{protocol.ExecApprovalRequest{Command: []string{exact}, Cwd: "/w"}, "Allow Codex to run `" + exact + "` in `/w`?", false},
		{protocol.ExecApprovalRequest{Command: []string{over}, Cwd: "/w"}, "The command is not shown whole: it has 1,801 characters in 1 line.\nAllow Codex to run `" + over[:1500] + "… (1 characters hidden) …" + over[:300] + "` in `/w`?", true},
		{protocol.ExecApprovalRequest{Command: []string{strings.Repeat("x", 1_001_800)}, Cwd: "/w"}, "The command is not shown whole: it has 1,001,800 characters in 1 line.\nAllow Codex to run `" + over[:1500] + "… (1,000,000 characters hidden) …" + over[:300] + "` in `/w`?", true},
		{protocol.ExecApprovalRequest{Command: []string{strings.Repeat("x", 1900)}, Cwd: "/w"}, "The command is not shown whole: it has 1,900 characters in 1 line.\nAllow Codex to run `" + over[:1500] + "… (100 characters hidden) …" + over[:300] + "` in `/w`?", true},
	} {
		if q := question(tt.exec); q.Message != tt.want || q.Once != tt.once {
			t.Errorf("%.120q, once %v, want %.120q, once %v", q.Message, q.Once, tt.want, tt.once)
		}
	}
	for text, want := range map[string]string{
		"`a": "`` `a ``", "a`": "`` a` ``", " ": "`   `", "a`b": "``a`b``", "a": "`a`", "\u200b": "`\\u{200b}` (contains hidden characters)",
	} {
		if span, whole := elicit.ShowCode(text); span != want || !whole {
			t.Errorf("%q: %q, whole %v, want %q", text, span, whole, want)
		}
	}
	if span, whole := elicit.ShowCode(over); whole || len(span) > 1850 {
		t.Errorf("%d bytes shown, whole %v", len(span), whole)
	}
}

// TestChangesAtTheEdge checks what a question about many changes lists: all of forty, and those
// that leave the workspace or go through links first.
func TestChangesAtTheEdge(t *testing.T) {
	testenv.NeedsUnix(t, testenv.Paths)
	plain := make([]approval.Change, 45)
	for i := range plain {
		plain[i] = approval.Change{Kind: "add", Path: fmt.Sprint("f", i)}
	}
	q := (&approval.Patch{Cwd: "/w", Changes: plain[:40]}).Question()
	if strings.Contains(q.Message, "more") || !strings.Contains(q.Message, "`f39`") || q.Once {
		t.Errorf("forty: once %v, %s", q.Once, q.Message)
	}
	for name, c := range map[string]approval.Change{
		"link":          {Kind: "add", Path: "zz", Via: "other"},
		"link to move":  {Kind: "update", Path: "zz", MoveTo: "yy", MoveVia: "other"},
		"outside":       {Kind: "add", Path: "../zz"},
		"moves outside": {Kind: "update", Path: "zz", MoveTo: "../yy"},
	} {
		q := (&approval.Patch{Cwd: "/w", Changes: append(plain[:45:45], c)}).Question()
		if !strings.Contains(strings.Split(q.Message, "\n")[1], "zz`") || strings.Contains(q.Message, "too") {
			t.Errorf("%s: %s", name, q.Message)
		}
	}
	all := make([]approval.Change, 41)
	for i := range all {
		all[i] = approval.Change{Kind: "delete", Path: fmt.Sprint("../f", i), Removed: 2}
	}
	q = (&approval.Patch{Cwd: "/w", Changes: all}).Question()
	if !strings.Contains(q.Message, "- and 1 more (41 in all), which may be outside the workspace too") || !strings.Contains(q.Message, "- delete `../f0` (outside the workspace) (+0 -2)") {
		t.Error(q.Message)
	}
	q = (&approval.Patch{Changes: []approval.Change{{Kind: "add", Path: "../x"}}}).Question()
	if strings.Contains(q.Message, "outside") {
		t.Errorf("without a workspace: %s", q.Message)
	}
}

// TestStackedMarks checks that no text of another party covers the lines around.
func TestStackedMarks(t *testing.T) {
	shout := "e" + strings.Repeat("\u0301", 300)
	for name, q := range map[string]*elicit.Question{
		"command": question(protocol.ExecApprovalRequest{Command: []string{"echo", shout}, Cwd: "/w"}),
		"folder":  question(protocol.ExecApprovalRequest{Command: []string{"true"}, Cwd: "/w/" + shout}),
		"reason":  question(protocol.ExecApprovalRequest{Command: []string{"true"}, Cwd: "/w", Reason: shout}),
		"note":    question(protocol.ExecApprovalRequest{Command: []string{"true"}, Cwd: "/w", Notes: []string{shout}}),
		"program": question(protocol.ExecApprovalRequest{Command: []string{"true"}, Cwd: "/w", Program: "/w/" + shout}),
		"subject": question(protocol.ExecApprovalRequest{Subject: shout, Command: []string{"true"}, Cwd: "/w"}),
		"path":    (&approval.Patch{Changes: []approval.Change{{Kind: "add", Path: shout}}}).Question(),
	} {
		if strings.Contains(q.Message, strings.Repeat("\u0301", 9)) || !strings.Contains(q.Message, "(contains hidden characters)") {
			t.Errorf("%s: %q", name, q.Message)
		}
	}
}
