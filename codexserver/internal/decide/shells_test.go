package decide_test

import (
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
)

// TestEveryShell checks that rules that deny see into the scripts of every shell, however it is
// named, and that rules that allow see only into those that they know.
func TestEveryShell(t *testing.T) {
	known := []string{"bash", "sh", "zsh", "dash", "ksh"}
	for _, shell := range append(slices.Clone(known), "ash", "csh", "fish", "mksh", "pdksh", "rbash", "tcsh", "yash") {
		for _, name := range []string{shell, "/bin/" + shell, `C:\tools\` + shell + ".EXE", "-" + shell, shell + ".exe", shell + ".Com. "} {
			if !decide.Mentions([][]string{{"rm", "x"}}, []string{name, "-c", "ls; rm x"}) {
				t.Errorf("%s: rm is not mentioned", name)
			}
			commands, plain := decide.Commands([]string{name, "-c", "ls"})
			if want := (name == shell || name == "/bin/"+shell) && slices.Contains(known, shell); plain != want || want && !slices.EqualFunc(commands, [][]string{{"ls"}}, slices.Equal) {
				t.Errorf("%s: %q, plain %v", name, commands, plain)
			}
		}
	}
	for _, argv := range [][]string{nil, {"bash", "-c", "ls $x"}, {"bash", "-c", "ls *"}, {"bash", "-x", "ls"}, {"bash", "-c", "ls", "x"}} {
		if commands, plain := decide.Commands(argv); plain {
			t.Errorf("%q: %q", argv, commands)
		}
	}
}
