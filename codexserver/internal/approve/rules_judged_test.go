package approve

import (
	"bytes"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
)

// TestRulesAsJudged asks about every command of the corpus.
func TestRulesAsJudged(t *testing.T) {
	rules := approval.Rules{
		Allow: []approval.Rule{
			{Command: []string{"go", "test"}}, {Command: []string{"git", "log"}}, {Command: []string{"make"}, Outside: true},
			{Command: []string{"run.sh"}}, {Command: []string{"./run.sh"}}, {Command: []string{"node_modules/.bin/tsc"}},
			{Command: []string{"tsc"}}, {Command: []string{"pytest"}}, {Command: []string{"linked"}}, {Command: []string{"missing"}},
		},
		Deny: [][]string{{"git", "push"}, {"rm"}},
	}
	corpus, err := os.ReadFile("../decide/testdata/judged.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	words := map[elicit.Decision]string{"": "ask", elicit.Approved: "allow", elicit.Denied: "deny"}
	for line := range bytes.Lines(corpus) {
		var row struct {
			Command []string
			Rules   string
			Why     string
		}
		if err := json.Unmarshal(line, &row, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		q := protocol.ExecApprovalRequest{Command: row.Command, Cwd: "/work", Confinable: true}
		out, _ := decideExec(&rules, &q)
		if got := words[out.Decision]; got != row.Rules {
			t.Errorf("%q: %s, want %s: %s", row.Command, got, row.Rules, row.Why)
		}
	}
}
