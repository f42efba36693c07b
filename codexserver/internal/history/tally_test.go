package history_test

import (
	"strings"
	"testing"
)

// tally counts what has happened in the steps, so that a run which tries nothing fails.
type tally map[string]int

var wanted = []string{
	"approved by client", "approved by desk", "approved by rule", "approved_for_session by client", "approved_for_session by desk",
	"approved_always by client", "approved_always by desk", "denied by client", "denied by desk", "denied by rule", "abort by client",
	"is gone", "is cancelled", `runs "ls"`, `"status":"completed","createdAt"`, "running", "the engine is told", "answers from now on",
}

func (c tally) add(trace string) {
	for _, words := range wanted {
		c[words] += strings.Count(trace, words)
	}
}

func (c tally) check(t *testing.T) {
	for _, words := range wanted {
		if c[words] == 0 {
			t.Errorf("it never happened: %s", words)
		}
	}
	t.Logf("%v", c)
}
