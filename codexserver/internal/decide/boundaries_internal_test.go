package decide

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestBoundaries has what is compared at its boundary, one less and one more.
func TestBoundaries(t *testing.T) {
	words := func(text string) []string { return strings.Fields(text) }
	script := func(argv ...string) bool { _, ok := ScriptOf(argv); return ok }
	inShell := func(argv ...string) bool { _, ok := ShellScript(argv); return ok }
	isHost := func(name string) bool { _, err := Host(name); return err == nil }
	parses := func(text string) bool { _, err := ParseFile(text); return err == nil }
	denies := func(rule, command string) bool { return Mentions([][]string{words(rule)}, words(command)) }
	behind := func(args int) bool {
		return Mentions([][]string{{"rm"}}, append([]string{"env"}, slices.Repeat([]string{"A=b"}, args)...))
	}
	inScript := func(args ...Word) bool {
		m := &mentions{}
		m.shell(args, false, maxNested)
		return m.found
	}
	label := func(n int) string { return strings.Repeat("a", n) }
	name := func(n int) string { return label(50) + "." + label(n-51) }
	for _, tt := range []struct {
		what string
		got  bool
		want bool
	}{
		{"a rule one word shorter than the command", Begins(words("git status"), words("git status -s")), true},
		{"a rule as long as the command", Begins(words("git status"), words("git status")), true},
		{"a rule one word longer", Begins(words("git status -s"), words("git status")), false},
		{"a rule of one word", Begins(words("git"), words("git status")), true},
		{"a rule without a word", Begins(nil, words("git status")), false},

		{"a script with one word less", script("bash", "-lc"), false},
		{"a script", script("bash", "-lc", "ls"), true},
		{"a script with one word more", script("bash", "-lc", "ls", "x"), false},
		{"a shell with one word less", inShell("sh", "-c"), false},
		{"a shell", inShell("sh", "-c", "ls"), true},
		{"a shell with one word more", inShell("sh", "-c", "ls", "x"), false},

		{"one command is written alone", slices.Equal(Written([]string{"sh", "-c", "ls"}), []string{"ls"}), true},
		{"two commands are not", slices.Equal(Written([]string{"sh", "-c", "ls; ls"}), []string{"sh", "-c", "ls; ls"}), true},
		{"no command is not", slices.Equal(Written([]string{"sh", "-c", ""}), []string{"sh", "-c", ""}), true},

		{"a name one shorter than the longest", isHost(name(MaxHost - 1)), true},
		{"the longest name", isHost(name(MaxHost)), true},
		{"a name one longer", isHost(name(MaxHost + 1)), false},
		{"the longest part of a name", isHost(label(63) + ".a"), true},
		{"a part one longer", isHost(label(64) + ".a"), false},
		{"the longest last part", isHost("a." + label(63)), true},
		{"a last part one longer", isHost("a." + label(64)), false},

		{"sed with one word less", KnownSafe(words("sed -n 1p"), false), false},
		{"sed", KnownSafe(words("sed -n 1p file"), false), true},
		{"sed with one word more", KnownSafe(words("sed -n 1p file file"), false), false},

		{"command without a word", denies("command", "command"), true},
		{"command that looks one up", denies("rm", "command -v rm"), false},
		{"command that runs one", denies("rm", "command rm"), true},

		{"a rule of one letter", denies("x", "/bin/x"), true},
		{"a rule of a drive", denies("c:/x", "/bin/x"), true},
		{"a rule of a folder", denies("/c/x", "/bin/x"), false},

		{"a short name of one that needs none", isShort("abcdef~1", "abcdefgh"), false},
		{"a short name", isShort("abcdef~1", "abcdefghi"), true},
		{"a stem of one letter", isShort("a~1", "abcdefghi"), false},
		{"a stem of two", isShort("ab~1", "abcdefghi"), true},
		{"a stem of two and a sum, one less", isShort("ab123~1", "abcdefghi"), false},
		{"a stem of two and a sum", isShort("ab1234~1", "abcdefghi"), true},
		{"a stem of two and a sum, one more", isShort("ab12345~1", "abcdefghi"), false},
		{"before the digits", isShort("ab~/", "abcdefghi"), false},
		{"the first digit", isShort("ab~0", "abcdefghi"), true},
		{"the last digit", isShort("ab~9", "abcdefghi"), true},
		{"after the digits", isShort("ab~:", "abcdefghi"), false},

		{"a variable in place of an option", inScript(Word{Open: true}), true},
		{"a variable in place of the script", inScript(Word{Text: "-c"}, Word{Open: true}), true},
		{"a variable behind the script", inScript(Word{Text: "-c"}, Word{Text: "ls"}, Word{Open: true}), false},
		{"a shell that reads its input", inScript(Word{Text: "-x"}), true},
		{"an option that is no script", inScript(Word{Text: "-c '"}, Word{Text: "ls"}), false},
		{"a script that is none", inScript(Word{Text: "-c"}, Word{Text: "'"}), true},
		{"an empty here-document", inScript(Word{Text: "-c"}, Word{Text: "cat <<EOF\nEOF\n"}), false},
		{"as many words as are looked through", behind(maxBehind), false},
		{"one more", behind(maxBehind + 1), true},

		{"xargs with -i alone", places(Word{Text: "-i"}), false},
		{"xargs with -i and one letter", places(Word{Text: "-ix"}), true},

		{"a text one shorter than the longest", parses(strings.Repeat("a", MaxScript-1)), true},
		{"the longest text", parses(strings.Repeat("a", MaxScript)), true},
		{"a text one longer", parses(strings.Repeat("a", MaxScript+1)), false},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %t, want %t", tt.what, tt.got, tt.want)
		}
	}
}

// TestDepthBoundary looks at a script at the last depth, and takes what is deeper for what a rule denies.
func TestDepthBoundary(t *testing.T) {
	for depth, want := range map[int]bool{-1: true, 0: true, 1: false} {
		scripted, behind := &mentions{}, &mentions{}
		scripted.script("ls", true, depth)
		behind.behind("env", []Word{{Text: "A=b"}}, false, depth)
		if scripted.found != want || behind.found != want {
			t.Errorf("depth %d: a script %t, what follows a starter %t, want %t", depth, scripted.found, behind.found, want)
		}
	}
	_, err := ParseFile(strings.Repeat("a", MaxScript+1))
	must.Equal(t, "the error of a text that is too long", true, errors.Is(err, ErrScript))
}

// TestWiderSandbox compares each sandbox of a call with each of the configuration: what it gives beyond that, and what
// remains of it.
func TestWiderSandbox(t *testing.T) {
	const read, write, full = protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess
	for _, tt := range []struct{ mode, base, beyond, narrowed protocol.SandboxMode }{
		{read, read, "", read},
		{read, write, "", read},
		{read, full, "", read},
		{write, read, write, read},
		{write, write, write, write},
		{write, full, write, write},
		{full, read, full, read},
		{full, write, full, write},
		{full, full, "", full},
	} {
		grant, base := &Grant{}, &Grant{}
		grant.Sandbox.Mode, base.Sandbox.Mode = tt.mode, tt.base
		beyond := grant.Beyond(base, nil).Mode
		grant.Narrow(base)
		if beyond != tt.beyond || grant.Sandbox.Mode != tt.narrowed {
			t.Errorf("%s beyond %s: %q, and narrowed %q", tt.mode, tt.base, beyond, grant.Sandbox.Mode)
		}
	}
}
