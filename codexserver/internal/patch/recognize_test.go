package patch_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func TestRecognize(t *testing.T) {
	const p = "*** Begin Patch\n*** Add File: $HOME/`x`\n+\\$y\n*** End Patch\n"
	bash := func(script string) []string { return []string{"bash", "-lc", script} }
	tests := []struct {
		name string
		argv []string
		want *patch.Invocation
	}{
		{"program", []string{"apply_patch", p}, &patch.Invocation{Text: p}},
		{"quoted heredoc", bash("apply_patch <<'EOF'\n" + p + "EOF\n"), &patch.Invocation{Text: p}},
		{"plain heredoc", bash("applypatch <<PATCH\n" + p + "PATCH\n"), &patch.Invocation{Text: p}},
		{"a delimiter of words", bash("apply_patch <<'END OF-PATCH.1'\n" + p + "END OF-PATCH.1\n"), &patch.Invocation{Text: p}},
		{"cd", bash("cd sub && apply_patch <<'EOF'\n" + p + "EOF\n"), &patch.Invocation{Text: p, Dir: "sub"}},
		{"cd quoted", bash("cd 'a b' && apply_patch <<'EOF'\n" + p + "EOF\n"), &patch.Invocation{Text: p, Dir: "a b"}},
		{"blank lines around", bash("\n\napply_patch <<'EOF'\n" + p + "EOF\n\n"), &patch.Invocation{Text: p}},

		{"a third name", []string{"apply-patch", p}, &patch.Invocation{Text: p}},
		{"the patch alone", []string{p}, &patch.Invocation{Text: p}},
		{"the patch as a script", bash("\n" + p), &patch.Invocation{Text: "\n" + p}},
		{"options", []string{"bash", "-e", "-c", "apply_patch <<'EOF'\n" + p + "EOF\n"}, &patch.Invocation{Text: p}},
		{"options with a name", []string{"bash", "--noprofile", "-euo", "pipefail", "-c", "apply_patch '" + p + "'"}, &patch.Invocation{Text: p}},
		{"options in one word", []string{"/bin/sh", "-ec", "apply_patch '" + p + "'"}, &patch.Invocation{Text: p}},
		{"set", bash("set -e; apply_patch <<'EOF'\n" + p + "EOF\n"), &patch.Invocation{Text: p}},
		{"set on a line", bash("set -euo pipefail\nset -x\ncd sub && apply_patch <<'EOF'\n" + p + "EOF\n"), &patch.Invocation{Text: p, Dir: "sub"}},
		{"cat", bash("cat <<'EOF' | apply_patch\n" + p + "EOF\n"), &patch.Invocation{Text: p}},
		{"cat as an argument", bash("apply_patch \"$(cat <<'EOF'\n" + p + "EOF\n)\""), &patch.Invocation{Text: p}},

		{"nothing", nil, nil},
		{"half a patch alone", []string{"*** Begin Patch\n*** Add File: x\n"}, nil},
		{"a patch and a word", []string{p, "x"}, nil},
		{"a patch as a script and a command", bash(p + "\nls"), nil},
		{"a script's name", []string{"bash", "-c", "pipefail", "apply_patch '" + p + "'"}, nil},
		{"an option without its name", []string{"bash", "-o", "-c", "apply_patch '" + p + "'"}, nil},
		{"an option that only parses", []string{"bash", "-nc", "apply_patch '" + p + "'"}, nil},
		{"set that only parses", bash("set -n; apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"set of arguments", bash("set x; apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"set into a file", bash("set -e > x; apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"set with a variable", bash("set $x; apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"set alone", bash("set -e"), nil},
		{"cat of a file", bash("cat p.diff | apply_patch"), nil},
		{"cat of a file as an argument", bash("apply_patch \"$(cat p.diff)\""), nil},
		{"a file", bash("apply_patch < p.diff"), nil},
		{"cat and a file", bash("cat p.diff <<'EOF' | apply_patch\n" + p + "EOF\n"), nil},
		{"cat through another program", bash("cat <<'EOF' | tee x | apply_patch\n" + p + "EOF\n"), nil},
		{"another program as an argument", bash("apply_patch \"$(tee x <<'EOF'\n" + p + "EOF\n)\""), nil},
		{"two commands as an argument", bash("apply_patch \"$(ls; cat <<'EOF'\n" + p + "EOF\n)\""), nil},
		{"cat without quotes", bash("apply_patch $(cat <<'EOF'\n" + p + "EOF\n)"), nil},
		{"no patch", []string{"apply_patch"}, nil},
		{"path", []string{"/bin/apply_patch", p}, nil},
		{"another shell", []string{"sh", "-lc", "apply_patch <<'EOF'\n" + p + "EOF\n"}, &patch.Invocation{Text: p}},
		{"a third shell", []string{"zsh", "-c", "apply_patch <<'EOF'\n" + p + "EOF\n"}, &patch.Invocation{Text: p}},
		{"a shell with a path", []string{"/bin/bash", "-c", "apply_patch <<'EOF'\n" + p + "EOF\n"}, &patch.Invocation{Text: p}},
		{"a quoted argument", bash("cd sub && apply_patch '" + p + "'"), &patch.Invocation{Text: p, Dir: "sub"}},
		{"a double quoted argument", bash(`apply_patch "` + strings.NewReplacer("$", "", "`", "", `\`, "").Replace(p) + `"`), &patch.Invocation{Text: strings.NewReplacer("$", "", "`", "", `\`, "").Replace(p)}},
		{"an argument that the shell computes", bash(`apply_patch "` + p + `"`), nil},
		{"two arguments", bash("apply_patch '" + p + "' x"), nil},
		{"a quoted argument and a redirection", bash("apply_patch '" + p + "' > x"), nil},
		{"no option for a script", []string{"bash", "-x", "apply_patch <<'EOF'\n" + p + "EOF\n"}, nil},
		{"a command on the same line", bash("apply_patch <<'EOF' && ls\n" + p + "EOF\n"), nil},
		{"a command after it", bash("apply_patch <<'EOF'\n" + p + "EOF\nls"), nil},
		{"a command before it", bash("ls; apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"or", bash("cd sub || apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"background", bash("apply_patch <<'EOF' &\n" + p + "EOF\n"), nil},
		{"another redirection", bash("apply_patch <<'EOF' > x\n" + p + "EOF\n"), nil},
		{"argument", bash("apply_patch x <<'EOF'\n" + p + "EOF\n"), nil},
		{"assignment", bash("A=1 apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with a variable", bash("cd $X && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd back", bash("cd - && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd twice", bash("cd a && cd b && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"subshell", bash("(apply_patch <<'EOF'\n" + p + "EOF\n)"), nil},
		{"here string", bash("apply_patch <<< x"), nil},
		{"stripped heredoc", bash("apply_patch <<-EOF\n\t" + p + "\t\tEOF\n"), &patch.Invocation{Text: p}},
		{"another program", bash("cat <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd home", bash("cd && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with two words", bash("cd a b && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with a redirection", bash("cd sub >x && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with a pattern", bash("cd s* && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd below home", bash("cd ~/x && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with a backslash", bash("cd a\\b && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with a quoted variable", bash("cd \"$X\" && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with two parts", bash("cd a'b' && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"negated", bash("! apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"a delimiter of two parts", bash("apply_patch <<E'O'F\n" + p + "EOF\n"), nil},
		{"no heredoc", bash("apply_patch"), nil},
		{"a delimiter that looks computed", bash("apply_patch <<\"E$X\"\n" + p + "E$X\n"), nil},
		{"open heredoc", bash("apply_patch <<'EOF'\n" + p), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got *patch.Invocation
			if inv, ok := patch.Recognize(tt.argv); ok {
				got = &inv
			}
			must.Equal(t, "the invocation", tt.want, got)
		})
	}
	must.Equal(t, "a relative folder", "/a", patch.Invocation{Dir: "sub/.."}.In("/a"))
	must.Equal(t, "an absolute folder", "/b", patch.Invocation{Dir: "/b"}.In("/a"))
}
