package elicit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
)

// TestFlagsRefuse checks that each boolean that hosts use for a confirmation also refuses.
func TestFlagsRefuse(t *testing.T) {
	for _, flag := range []string{"approved", "approve", "confirm", "confirmed", "allow", "allowed"} {
		for value, want := range map[string]elicit.Decision{"true": approved, "false": denied, `"yes"`: denied, "null": denied} {
			answer := fmt.Sprintf(`{"action":"accept","content":{%q:%s}}`, flag, value)
			if out := kinds[0].question.Read(json.RawMessage(answer), nil); out.Decision != want {
				t.Errorf("%s: %s", answer, out.Decision)
			}
		}
	}
}

// TestStricterOfAll compares every two decisions, each with itself too.
func TestStricterOfAll(t *testing.T) {
	order := []elicit.Decision{"", elicit.ApprovedAlways, session, approved, denied, abort}
	for i, d := range order {
		for j, other := range order {
			if d.Stricter(other) != (i > j) {
				t.Errorf("%q stricter than %q: %v", d, other, !(i > j))
			}
		}
	}
}

// TestQuestionThatCannotBeSent checks that a question that has no JSON is not asked: its
// answer would be about nothing.
func TestQuestionThatCannotBeSent(t *testing.T) {
	q := &elicit.Question{Message: "?", Extra: map[string]any{"codex_command": func() {}}}
	asked := false
	asker := elicit.NewAsker(elicit.CallFunc(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		asked = true
		return json.RawMessage(`{"action":"accept"}`), nil
	}), able, nil)
	if out := asker.Ask(t.Context(), q); out.Decision != denied || out.Reason != "client_error" || asked {
		t.Errorf("%s %s, asked %v", out.Decision, out.Reason, asked)
	}
	if raw, err := q.InputRequest(able, nil); err == nil {
		t.Errorf("input request %s", raw)
	}
}

// TestReservedMembers checks that members that MCP defines cannot come from Extra.
func TestReservedMembers(t *testing.T) {
	q := &elicit.Question{Message: "?", Extra: map[string]any{"_meta": 1, "mode": "url", "message": "!", "requestedSchema": 1, "codex_x": 2}}
	raw, err := q.Params(able, nil)
	if want := `{"codex_x":2,"message":"?","requestedSchema":{"type":"object","properties":{}}}`; err != nil || string(raw) != want {
		t.Errorf("%s, %v, want %s", raw, err, want)
	}
}

// TestOddErrorAfterTheTimeout checks that the time-out is the reason whatever a caller returns
// then, and that an answer after the end of the turn does not approve.
func TestOddErrorAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := func(answer string, err error) elicit.CallFunc {
			return func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
				<-ctx.Done()
				return json.RawMessage(answer), err
			}
		}
		o := &elicit.Options{Timeout: time.Second}
		if out := elicit.NewAsker(late("", errors.New("odd")), able, o).Ask(t.Context(), kinds[0].question); out.Reason != "timeout" {
			t.Errorf("odd error: %s, %s", out.Decision, out.Reason)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if out := elicit.NewAsker(late(`{"action":"accept"}`, nil), able, o).Ask(ctx, kinds[0].question); out.Decision != abort {
			t.Errorf("after the turn: %s", out.Decision)
		}
	})
}

// TestSlotOfAQuestionThatLeft checks that a question that stops waiting for its turn gives its
// place away: the next one is asked.
func TestSlotOfAQuestionThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		asker := elicit.NewAsker(d, able, &elicit.Options{MaxPending: 1})
		ask := func(ctx context.Context, message string) chan elicit.Outcome {
			ends := make(chan elicit.Outcome, 1)
			go func() { ends <- asker.Ask(ctx, &elicit.Question{Message: message}) }()
			synctest.Wait()
			return ends
		}
		first := ask(t.Context(), "first")
		ctx, leave := context.WithCancel(t.Context())
		second := ask(ctx, "second")
		leave()
		if out := <-second; out.Decision != abort {
			t.Errorf("second: %s", out.Decision)
		}
		third := ask(t.Context(), "third")
		d.slot("first") <- `{"action":"accept"}`
		<-first
		d.slot("third") <- `{"action":"accept"}`
		if out := <-third; out.Decision != approved {
			t.Errorf("third: %s", out.Decision)
		}
	})
}

// TestNilOptions checks the time for an answer without options, and the words of an outcome
// that another package made.
func TestNilOptions(t *testing.T) {
	ctx, cancel := (*elicit.Options)(nil).WithTimeout(t.Context())
	defer cancel()
	if end, ok := ctx.Deadline(); !ok || time.Until(end) > elicit.DefaultTimeout {
		t.Errorf("ends at %v, %v", end, ok)
	}
	for want, out := range map[string]elicit.Outcome{
		"declined": {Decision: denied}, "declined: use make": {Decision: denied, Feedback: "use make"}, "": {Decision: approved, Feedback: "x"},
	} {
		if got := out.ForModel(); got != want {
			t.Errorf("%+v: %q, want %q", out, got, want)
		}
	}
}

// TestFormClients checks who sees the choice of decisions under FormAuto.
func TestFormClients(t *testing.T) {
	for capabilities, shown := range map[string]bool{
		`{"elicitation":{"form":{}}}`: true, `{"elicitation":{"form":{},"url":{}}}`: true, `{"elicitation":{}}`: false, `{"elicitation":{"form":null}}`: false,
		`{"elicitation":{"form":{},"form":{}}}`: false, `{"elicitation":{"url":{}}}`: false, `{"form":{}}`: false, `{}`: false, ``: false,
	} {
		client := able
		client.Capabilities = json.RawMessage(capabilities)
		raw, err := kinds[0].question.Params(client, &elicit.Options{Schema: elicit.FormAuto})
		if err != nil || strings.Contains(string(raw), `"decision"`) != shown {
			t.Errorf("%s: %s, %v", capabilities, raw, err)
		}
	}
}

// TestNothingHides has the texts at the edges of what is escaped, cut and marked.
func TestNothingHides(t *testing.T) {
	for text, want := range map[string]string{
		"\u0080":            `\u{80}`,
		"\u0301\u0302":      `\u{301}\u{302}`,
		"a\tb\nc\t":         "a\tb\nc\t",
		"\x1b\u0301\u0302x": `\x1b\u{301}\u{302}x`,
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
		exec elicit.ExecQuestion
		want string
		once bool
	}{
		{elicit.ExecQuestion{Command: []string{"a\u200b", "b"}, Cwd: "/w"}, "Allow Codex to run `$'a\\u{200b}' b` in `/w`?" + hidden, false},
		{elicit.ExecQuestion{Command: []string{"ls"}, Cwd: "'w"}, "Allow Codex to run `ls` in `\"'w\"`?", false},
		{elicit.ExecQuestion{Command: []string{"ls"}, Cwd: `"w`}, "Allow Codex to run `ls` in `'\"w'`?", false},
		{elicit.ExecQuestion{Command: []string{"ls"}, Cwd: " w"}, "Allow Codex to run `ls` in `' w'`?", false},
		{elicit.ExecQuestion{Command: []string{"ls"}, Cwd: "w "}, "Allow Codex to run `ls` in `'w '`?", false},
		{elicit.ExecQuestion{Command: []string{"ls"}, Cwd: "/w", Reason: "see https://x.test"},
			"Allow Codex to run `ls` in `/w`?\nReason given by the model: `\"see https://x.test\"`", false},
		{elicit.ExecQuestion{Command: []string{"ls"}, Cwd: "/w", Reason: "see www.x.test"},
			"Allow Codex to run `ls` in `/w`?\nReason given by the model: `\"see www.x.test\"`", false},
		{elicit.ExecQuestion{Command: []string{exact}, Cwd: "/w"}, "Allow Codex to run `" + exact + "` in `/w`?", false},
		{elicit.ExecQuestion{Command: []string{over}, Cwd: "/w"}, "The command is not shown whole: it has 1,801 characters in 1 line.\nAllow Codex to run `" + over[:1500] + "… (1 characters hidden) …" + over[:300] + "` in `/w`?", true},
		{elicit.ExecQuestion{Command: []string{strings.Repeat("x", 1_001_800)}, Cwd: "/w"}, "The command is not shown whole: it has 1,001,800 characters in 1 line.\nAllow Codex to run `" + over[:1500] + "… (1,000,000 characters hidden) …" + over[:300] + "` in `/w`?", true},
		{elicit.ExecQuestion{Command: []string{strings.Repeat("x", 1900)}, Cwd: "/w"}, "The command is not shown whole: it has 1,900 characters in 1 line.\nAllow Codex to run `" + over[:1500] + "… (100 characters hidden) …" + over[:300] + "` in `/w`?", true},
	} {
		if q := tt.exec.Question(); q.Message != tt.want || q.Once != tt.once {
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
	plain := make([]elicit.Change, 45)
	for i := range plain {
		plain[i] = elicit.Change{Kind: "add", Path: fmt.Sprint("f", i)}
	}
	q := (&elicit.PatchQuestion{Cwd: "/w", Changes: plain[:40]}).Question()
	if strings.Contains(q.Message, "more") || !strings.Contains(q.Message, "`f39`") || q.Once {
		t.Errorf("forty: once %v, %s", q.Once, q.Message)
	}
	for name, c := range map[string]elicit.Change{
		"link":          {Kind: "add", Path: "zz", Via: "other"},
		"link to move":  {Kind: "update", Path: "zz", MoveTo: "yy", MoveVia: "other"},
		"outside":       {Kind: "add", Path: "../zz"},
		"moves outside": {Kind: "update", Path: "zz", MoveTo: "../yy"},
	} {
		q := (&elicit.PatchQuestion{Cwd: "/w", Changes: append(plain[:45:45], c)}).Question()
		if !strings.Contains(strings.Split(q.Message, "\n")[1], "zz`") || strings.Contains(q.Message, "too") {
			t.Errorf("%s: %s", name, q.Message)
		}
	}
	all := make([]elicit.Change, 41)
	for i := range all {
		all[i] = elicit.Change{Kind: "delete", Path: fmt.Sprint("../f", i), Removed: 2}
	}
	q = (&elicit.PatchQuestion{Cwd: "/w", Changes: all}).Question()
	if !strings.Contains(q.Message, "- and 1 more (41 in all), which may be outside the workspace too") || !strings.Contains(q.Message, "- delete `../f0` (outside the workspace) (+0 -2)") {
		t.Error(q.Message)
	}
	q = (&elicit.PatchQuestion{Changes: []elicit.Change{{Kind: "add", Path: "../x"}}}).Question()
	if strings.Contains(q.Message, "outside") {
		t.Errorf("without a workspace: %s", q.Message)
	}
}
