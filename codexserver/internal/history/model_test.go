package history_test

import (
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/history"
)

// TestSameAnswer has the model judge a call that was approved by the answer to another one.
func TestSameAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		turn, command string
		say           history.Say
		justified     bool
	}{
		"the same question":     {"turn 1", "make", history.ForSession, true},
		"one of another turn":   {"turn 2", "make", history.ForSession, false},
		"another command":       {"turn 1", "make all", history.ForSession, false},
		"an answer for one run": {"turn 1", "make", history.Yes, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &history.Model{}
			m.Begun("turn 1", "thread")
			m.Begun("turn 2", "thread")
			m.Asks("first", "turn 1", "make")
			m.Asks("second", test.turn, test.command)
			m.Answered("first", "client", "a client", test.say)
			m.Decided("first", string(test.say), "client", "", "")
			m.Decided("second", string(test.say), "client", "first", "")
			found := slices.ContainsFunc(m.End(), func(f history.Fault) bool { return f.Kind == history.Unjustified && f.What == "second" })
			if found == test.justified {
				t.Errorf("unjustified: %t", found)
			}
		})
	}
}
