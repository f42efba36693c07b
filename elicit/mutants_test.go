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
