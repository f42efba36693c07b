package elicit_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
)

// TestSessionLimit checks that a form that offers an approval for the session says what it
// does not cover.
func TestSessionLimit(t *testing.T) {
	const limit = "does not cover a changed file that the command names"
	exec := (&elicit.ExecQuestion{Command: []string{"make"}, Cwd: "/w"}).Question()
	once := (&elicit.ExecQuestion{Command: []string{"make"}, Cwd: "/w"}).Question()
	once.Once = true
	for _, tt := range []struct {
		name     string
		question *elicit.Question
		form     elicit.Form
		want     bool
	}{
		{"a form", exec, elicit.FormDecision, true},
		{"an empty form", exec, elicit.FormEmpty, false},
		{"only once", once, elicit.FormDecision, false},
		{"a patch", (&elicit.PatchQuestion{Cwd: "/w"}).Question(), elicit.FormDecision, false},
		{"quotes", &elicit.Question{Session: `It ` + limit + `, "so".`}, elicit.FormDecisionBoth, true},
	} {
		params, err := tt.question.Params(elicit.Client{}, &elicit.Options{Schema: tt.form})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(params), limit); got != tt.want {
			t.Errorf("%s: %s", tt.name, params)
		}
	}
}
