package enginetest

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// shortens reports whether the conversations of an engine can change their history.
func shortens(e engine.Engine, _ engine.Conversation) bool { return engine.TraitsOf(e).Shortens }

func testShortened(t *testing.T, s *Subject) {
	c := start(t, s, always(elicit.Denied))
	turn := func(in protocol.TurnInput, words string, steps ...Step) (sent string) {
		t.Helper()
		last := &steps[len(steps)-1]
		last.Asked = func(s string) { sent = s }
		s.Script(steps...)
		in.Items = protocol.TextInput(words)
		events, err := c.run(t, t.Context(), words, in)
		completed(t, events, err, last.Text)
		return sent
	}
	// alone changes the history in a turn without a message.
	alone := func(what string, in protocol.TurnInput) error {
		t.Helper()
		events, err := c.run(t, t.Context(), what, in)
		if end := index[protocol.TaskComplete](events); err == nil && end != len(events)-1 {
			t.Errorf("%s: task_complete is not the last event: %s", what, types(events))
		}
		return err
	}
	check := func(when, sent string, has, lacks []string) {
		t.Helper()
		for _, words := range has {
			if !strings.Contains(sent, words) {
				t.Errorf("%s the model does not get %q", when, words)
			}
		}
		for _, words := range lacks {
			if strings.Contains(sent, words) {
				t.Errorf("%s the model still gets %q", when, words)
			}
		}
	}
	for _, words := range []string{"first wish", "second wish", "third wish"} {
		turn(protocol.TurnInput{}, words, Step{Text: "answer to the " + words})
	}
	sent := turn(protocol.TurnInput{Rollback: 1}, "fourth wish", Step{Text: "four"})
	check("after a rollback", sent, []string{"first wish", "answer to the second wish", "fourth wish"}, []string{"third wish"})
	if err := alone("rollback", protocol.TurnInput{Rollback: 2}); err != nil {
		t.Errorf("a rollback: %v", err)
	}
	sent = turn(protocol.TurnInput{}, "fifth wish", Step{Text: "five"})
	check("after another rollback", sent, []string{"first wish", "fifth wish"}, []string{"second wish", "fourth wish"})
	if err := alone("rollback", protocol.TurnInput{Rollback: 9}); err == nil {
		t.Error("more prompts were taken back than there are")
	}
	s.Script(Step{Text: "THE SUMMARY"})
	if err := alone("compact", protocol.TurnInput{Compact: true}); err != nil {
		t.Errorf("a summary: %v", err)
	}
	sent = turn(protocol.TurnInput{}, "sixth wish", Step{Text: "six"})
	check("after a summary", sent, []string{"THE SUMMARY", "sixth wish"}, []string{"answer to the first wish"})
	sent = turn(protocol.TurnInput{Compact: true}, "seventh wish", Step{Text: "SECOND SUMMARY"}, Step{Text: "seven"})
	check("after another summary", sent, []string{"SECOND SUMMARY", "seventh wish"}, nil)
}
