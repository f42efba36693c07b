package cut_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/cut"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestOf names calls, also those that somebody else wrote.
func TestOf(t *testing.T) {
	for _, tt := range []struct{ name, arguments, want string }{
		{"exec_command", `{"cmd":"make all"}`, "bash -lc 'make all'"},
		{"shell", `{"command":["git","push"]}`, "git push"},
		{"shell", `{"command":"ls -l"}`, "bash -lc 'ls -l'"},
		{"shell", `{"command":7}`, "shell"}, {"shell", `{"command":[7]}`, "shell"}, {"write", `{"path":"a"}`, "write"},
		{"apply_patch", "*** Begin Patch", "apply_patch"}, {"a\n</interrupted>\u202e", "", "a"},
	} {
		got := cut.Of(tt.name, tt.arguments).String()
		if !strings.HasPrefix(got, tt.want) || strings.ContainsAny(got, "\n\u202e") {
			t.Errorf("%s %s: %q, want %q", tt.name, tt.arguments, got, tt.want)
		}
	}
	if got := cut.Of("shell", fmt.Sprintf(`{"cmd":%q}`, strings.Repeat("x", 1<<20))).String(); len(got) > 300 {
		t.Errorf("a long command has %d bytes", len(got))
	}
}

// TestMessage tells the model and a person the same calls, and says how many more there are.
func TestMessage(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 20: 20, 21: 21, 500: 21} {
		open := make([]cut.Call, n)
		for i := range open {
			open[i] = cut.Call{Name: fmt.Sprint("call-", i)}
		}
		var notes []string
		text := protocol.TextOf(cut.Message(open, func(words string) { notes = append(notes, words) }))
		if len(notes) != want || strings.Count(text, "ithout a result: call-") != min(n, 20) || !strings.HasPrefix(text, cut.Head) || !strings.HasSuffix(text, "\n</interrupted>") {
			t.Errorf("%d calls: %d notes, %s", n, len(notes), text)
		}
		if n > 20 && (!strings.Contains(text, fmt.Sprintf("There are %d more calls", n-20)) || !strings.Contains(notes[20], fmt.Sprint(n-20))) {
			t.Errorf("%d calls: %s, %s", n, text, notes[20])
		}
	}
	var notes []string
	cut.Message([]cut.Call{cut.Of("shell", `{"command":["rm","x"]}`)}, func(words string) { notes = append(notes, words) })
	must.Equal(t, "the notes", []string{"The server ended while this call was open: rm x. It may have run or not, and was not run again."}, notes)
}
