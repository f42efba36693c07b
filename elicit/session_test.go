package elicit_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/elicit"
)

// TestSessionWords checks that a form that offers an approval for the session says what it
// covers.
func TestSessionWords(t *testing.T) {
	const again, inside = `"Approve for this session"`, `"Approve for this session, in the sandbox"`
	outside, free := &elicit.Question{Inside: true}, new(elicit.Question)
	once := &elicit.Question{Inside: true, Once: true}
	for _, tt := range []struct {
		name     string
		question *elicit.Question
		form     elicit.Form
		want     string // "" if the form does not offer the session
	}{
		{"a command that leaves the sandbox", outside, elicit.FormDecision, inside},
		{"another", free, elicit.FormDecision, again},
		{"an empty form", outside, elicit.FormEmpty, ""},
		{"only once", once, elicit.FormDecision, ""},
		{"both forms", outside, elicit.FormDecisionBoth, inside},
	} {
		params, err := tt.question.Params(elicit.Client{}, &elicit.Options{Schema: tt.form})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(params); !strings.Contains(got, tt.want) || tt.want == "" && strings.Contains(got, "session") {
			t.Errorf("%s: %s", tt.name, params)
		}
	}
}
