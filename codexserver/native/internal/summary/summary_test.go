package summary_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/summary"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
)

// TestOf describes plain commands, and says nothing of others.
func TestOf(t *testing.T) {
	word := func(s string) *string { return &s }
	unknown := func(text string) protocol.ParsedCommand { return protocol.ParsedCommand{Type: "unknown", Cmd: text} }
	bash := func(script string) []string { return []string{"bash", "-lc", script} }
	ls := protocol.ParsedCommand{Type: "list_files", Cmd: "ls"}
	for _, tt := range []struct {
		argv []string
		want []protocol.ParsedCommand
	}{
		{[]string{"ls"}, []protocol.ParsedCommand{ls}},
		{[]string{"ls", "-la", "src/cmd/"}, []protocol.ParsedCommand{{Type: "list_files", Cmd: "ls -la src/cmd/", Path: word("cmd")}}},
		{[]string{"ls", "a", "b"}, []protocol.ParsedCommand{unknown("ls a b")}},
		{[]string{"cat", "src/a.go"}, []protocol.ParsedCommand{{Type: "read", Cmd: "cat src/a.go", Name: word("a.go")}}},
		{[]string{"cat", "-n", "a.go"}, []protocol.ParsedCommand{unknown("cat -n a.go")}},
		{[]string{"cat", "a", "b"}, []protocol.ParsedCommand{unknown("cat a b")}},
		{[]string{"head", "-n", "5", "a b"}, []protocol.ParsedCommand{{Type: "read", Cmd: "head -n 5 'a b'", Name: word("a b")}}},
		{[]string{"sed", "-n", "1,5p", "a"}, []protocol.ParsedCommand{{Type: "read", Cmd: "sed -n '1,5p' a", Name: word("a")}}},
		{[]string{"tail", "-n", "+5", "src/"}, []protocol.ParsedCommand{{Type: "read", Cmd: "tail -n +5 src/", Name: word("src")}}},
		{[]string{"head", "-n", "x", "a"}, []protocol.ParsedCommand{unknown("head -n x a")}},
		{[]string{"sed", "-n", "w x", "a"}, []protocol.ParsedCommand{unknown("sed -n 'w x' a")}},
		{[]string{"head", "a"}, []protocol.ParsedCommand{unknown("head a")}},
		{[]string{"grep", "-n", "x", "d/a.txt"}, []protocol.ParsedCommand{{Type: "search", Cmd: "grep -n x d/a.txt", Query: word("x"), Path: word("a.txt")}}},
		{[]string{"rg", "x/y"}, []protocol.ParsedCommand{{Type: "search", Cmd: "rg x/y", Query: word("x/y")}}},
		{[]string{"rg", "--files"}, []protocol.ParsedCommand{{Type: "search", Cmd: "rg --files"}}},
		{[]string{"rg", "-g", "*.go", "x", "src"}, []protocol.ParsedCommand{unknown("rg -g '*.go' x src")}},
		{bash("cat a.txt && ls"), []protocol.ParsedCommand{{Type: "read", Cmd: "cat a.txt", Name: word("a.txt")}, ls}},
		{bash("ls | wc -l; true"), []protocol.ParsedCommand{ls}},
		{bash("echo start; sleep 20"), []protocol.ParsedCommand{unknown("sleep 20")}},
		{bash("true"), []protocol.ParsedCommand{unknown("true")}},
		{bash("ls |"), []protocol.ParsedCommand{unknown("ls |")}},
		{[]string{"bash", "-c", "env | cut -d= -f1 > 'a b'"}, []protocol.ParsedCommand{unknown("env"), unknown("cut '-d=' -f1 '>' 'a b'")}},
		{[]string{"bash", "-c", "|"}, []protocol.ParsedCommand{unknown("|")}},
		{[]string{"bash", "-c", "it's"}, []protocol.ParsedCommand{unknown("bash -c \"it's\"")}},
		{bash(`echo "a b"`), []protocol.ParsedCommand{unknown("echo 'a b'")}},
		{bash("ls > x"), []protocol.ParsedCommand{unknown("ls > x")}},
		{bash("ls $X"), []protocol.ParsedCommand{unknown("ls $X")}},
		{[]string{"sh", "-c", "ls"}, []protocol.ParsedCommand{unknown("sh -c ls")}},
		{nil, []protocol.ParsedCommand{unknown("")}},
	} {
		must.Equal(t, fmt.Sprintf("%q", tt.argv), tt.want, summary.Of(tt.argv))
	}
}

// TestAsRecorded compares single commands with how Codex 0.42.0 described them. What it does not say is unknown here.
func TestAsRecorded(t *testing.T) {
	text := must.Get(os.ReadFile("../../../internal/decide/testdata/commands.ndjson"))(t)
	same := 0
	for line := range bytes.Lines(text) {
		var r struct {
			Command []string
			Parsed  []protocol.ParsedCommand
		}
		must.OK(t, json.Unmarshal(line, &r, json.MatchCaseInsensitiveNames(true)))
		got := summary.Of(r.Command)
		if len(r.Command) > 0 && r.Command[0] == "bash" || len(got) == 1 && got[0].Type == "unknown" {
			continue
		}
		must.Equal(t, fmt.Sprintf("%q", r.Command), r.Parsed, got)
		same++
	}
	if same < 10 {
		t.Errorf("only %d commands", same)
	}
}
