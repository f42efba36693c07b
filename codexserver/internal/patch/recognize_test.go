package patch_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/google/go-cmp/cmp"
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
		{"other program", []string{"applypatch", p}, &patch.Invocation{Text: p}},
		{"quoted heredoc", bash("apply_patch <<'EOF'\n" + p + "EOF\n"), &patch.Invocation{Text: p}},
		{"double quoted heredoc", bash("apply_patch <<\"EOF\"\n" + p + "EOF"), &patch.Invocation{Text: p}},
		{"plain heredoc", bash("applypatch <<PATCH\n" + p + "PATCH\n"), &patch.Invocation{Text: p}},
		{"cd", bash("cd sub && apply_patch <<'EOF'\n" + p + "EOF\n"), &patch.Invocation{Text: p, Dir: "sub"}},
		{"cd quoted", bash("cd 'a b' && apply_patch <<'EOF'\n" + p + "EOF\n"), &patch.Invocation{Text: p, Dir: "a b"}},
		{"blank lines around", bash("\n\napply_patch <<'EOF'\n" + p + "EOF\n\n"), &patch.Invocation{Text: p}},

		{"nothing", nil, nil},
		{"no patch", []string{"apply_patch"}, nil},
		{"two patches", []string{"apply_patch", p, p}, nil},
		{"path", []string{"/bin/apply_patch", p}, nil},
		{"another shell", []string{"sh", "-lc", "apply_patch <<'EOF'\n" + p + "EOF\n"}, &patch.Invocation{Text: p}},
		{"a third shell", []string{"zsh", "-c", "apply_patch <<'EOF'\n" + p + "EOF\n"}, &patch.Invocation{Text: p}},
		{"another option", []string{"bash", "-c", "cd sub && apply_patch <<'EOF'\n" + p + "EOF\n"}, &patch.Invocation{Text: p, Dir: "sub"}},
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
		{"pipe", bash("apply_patch <<'EOF' | cat\n" + p + "EOF\n"), nil},
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
		{"another builtin", bash("pushd sub && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd home", bash("cd && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with two words", bash("cd a b && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with a redirection", bash("cd sub >x && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with two redirections", bash("cd sub >x <y && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd in the background too", bash("cd sub && apply_patch <<'EOF' &\n" + p + "EOF\n"), nil},
		{"cd with a pattern", bash("cd s* && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd below home", bash("cd ~/x && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with a backslash", bash("cd a\\b && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with a quoted backslash", bash("cd \"a\\$b\" && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with a quoted variable", bash("cd \"$X\" && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with a variable within", bash("cd \"a$X\" && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with two parts", bash("cd a'b' && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with escapes", bash("cd $'a' && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"cd with a translation", bash("cd $\"a\" && apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"negated", bash("! apply_patch <<'EOF'\n" + p + "EOF\n"), nil},
		{"another descriptor", bash("apply_patch 3<<'EOF'\n" + p + "EOF\n"), nil},
		{"a delimiter of two parts", bash("apply_patch <<E'O'F\n" + p + "EOF\n"), nil},
		{"no heredoc", bash("apply_patch"), nil},
		{"open heredoc", bash("apply_patch <<'EOF'\n" + p), nil},
		{"invalid script", bash("apply_patch <<'EOF"), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got *patch.Invocation
			if inv, ok := patch.Recognize(tt.argv); ok {
				got = &inv
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := (patch.Invocation{Dir: "sub/.."}).In("/a"); got != "/a" {
		t.Errorf("relative folder: %s", got)
	}
	if got := (patch.Invocation{Dir: "/b"}).In("/a"); got != "/b" {
		t.Errorf("absolute folder: %s", got)
	}
}

// TestRecognizeDeepScript has a script whose nesting would exhaust the parser's stack.
func TestRecognizeDeepScript(t *testing.T) {
	if _, ok := patch.Recognize([]string{"bash", "-lc", strings.Repeat("(", 4<<20)}); ok {
		t.Error("recognized as a patch")
	}
}
