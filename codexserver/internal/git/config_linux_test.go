package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
)

// TestUsersConfiguration makes worktrees while commands have written what the user's configuration of git
// includes, or its folder. A program that it names may run, but must not write anything.
func TestUsersConfiguration(t *testing.T) {
	rows := []struct {
		name string
		// lay lets the text count as the user's configuration.
		lay func(r *fixture, text string)
	}{
		{"a file of the working tree", func(r *fixture, text string) {
			r.write("evil.inc", text)
			r.write("../home/.gitconfig", fmt.Sprintf("[include]\n\tpath = %q\n", filepath.Join(r.dir, "evil.inc")))
		}},
		{"a file of the working tree, on a condition", func(r *fixture, text string) {
			r.write("evil.inc", text)
			r.write("../home/.gitconfig", fmt.Sprintf("[includeIf \"gitdir:/**\"]\n\tpath = %q\n", filepath.Join(r.dir, "evil.inc")))
		}},
		{"a writable folder for configurations", func(r *fixture, text string) {
			r.write("../writable/config/git/config", text)
			r.t.Setenv("XDG_CONFIG_HOME", filepath.Join(r.dir, "../writable/config"))
		}},
		{"a link to a writable folder", func(r *fixture, text string) {
			r.write("../writable/evil", text)
			r.write("../home/.config/x", "")
			if err := os.Symlink("../writable/evil", filepath.Join(r.dir, "../home/.gitconfig")); err != nil {
				r.t.Fatal(err)
			}
		}},
	}
	r := newRepo(t)
	r.write("a.txt", "one\n")
	r.write(".gitattributes", "*.txt filter=evil diff=evil merge=evil\n")
	r.commit("first")
	r.push()
	for i, r := range r.copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			r := r.in(t)
			trap := filepath.Join(t.TempDir(), "ran")
			var text strings.Builder
			for _, key := range append(traps, "core.hooksPath") {
				section, name, _ := strings.Cut(key, ".")
				if sub, last, ok := strings.Cut(name, "."); ok {
					section, name = fmt.Sprintf("%s %q", section, sub), last
				}
				if name == "process" {
					continue // git would not use clean
				}
				fmt.Fprintf(&text, "[%s]\n\t%s = \"touch '%s'; cat\"\n", section, name, trap)
			}
			text.WriteString("[filter \"evil\"]\n\trequired = true\n[commit]\n\tgpgSign = true\n")
			r.write("../home/x", "")
			t.Setenv("HOME", filepath.Join(r.dir, "../home"))
			t.Setenv("XDG_CONFIG_HOME", "")
			if err := os.Unsetenv("GIT_CONFIG_GLOBAL"); err != nil {
				t.Fatal(err)
			}
			tt.lay(r, text.String())
			r.write("a.txt", "two\n")
			r.write("b.txt", "new\n")
			if _, err := r.try("add", "--dry-run", "-A"); err != nil {
				t.Fatal(err)
			}
			if _, err := r.try("diff"); err != nil && !exists(trap) {
				t.Fatal(err)
			}
			if err := os.Remove(trap); err != nil {
				t.Fatalf("the trap does not work: %v", err)
			}

			home := t.TempDir()
			programs := &box.Programs{Temporary: []string{}}
			programs.Add(filepath.Join(r.dir, "../writable"))
			scratch := git.Scratch{Dir: filepath.Join(home, "tmp"), Programs: programs}
			if _, err := scratch.AddWorktree(t.Context(), r.dir, filepath.Join(home, "trees")); err != nil {
				t.Error(err)
			}
			if exists(trap) {
				t.Error("a program of the configuration wrote a file")
			}
		})
	}
}
