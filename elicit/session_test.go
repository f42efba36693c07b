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
	outside := (&elicit.ExecQuestion{Command: []string{"make"}, Cwd: "/w", Unsandboxed: true}).Question()
	free := (&elicit.ExecQuestion{Command: []string{"make"}, Cwd: "/w", NoSandbox: true}).Question()
	once := (&elicit.ExecQuestion{Command: []string{"make"}, Cwd: "/w", Unsandboxed: true}).Question()
	once.Once = true
	for _, tt := range []struct {
		name     string
		question *elicit.Question
		form     elicit.Form
		want     string // "" if the form does not offer the session
	}{
		{"a command that leaves the sandbox", outside, elicit.FormDecision, inside},
		{"a command without a sandbox", free, elicit.FormDecision, again},
		{"an empty form", outside, elicit.FormEmpty, ""},
		{"only once", once, elicit.FormDecision, ""},
		{"another engine", (&elicit.ExecQuestion{Command: []string{"make"}, Cwd: "/w"}).Question(), elicit.FormDecision, again},
		{"a patch", (&elicit.PatchQuestion{Cwd: "/w"}).Question(), elicit.FormDecision, again},
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
