//go:build unix

package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestCalls lists the commands of git that a look and a comparison start.
func TestCalls(t *testing.T) {
	first := newRepo(t)
	first.shell("for f in a b c d; do echo $f > $f; done")
	first.commit("first")
	const some = "ls-files write-tree update-index diff-index"
	rows := []struct{ name, lay, act, look, compare string }{
		{"nothing", "", "", "", ""},
		{"an edit", "", "echo x >> a", "", "write-tree update-index diff-index"},
		{"a file less", "", "rm a", "", "write-tree update-index diff-index"},
		{"many files less", "n=$(printf %0200d 0); mkdir $n; for i in $(seq 600); do : > $n/$n$i; done; git add $n; touch -t 210001010000 .git/index", "rm -r 0*",
			"", "write-tree update-index update-index diff-index"},
		{"a file more", "", "echo n > n", "", some},
		{"changes before", "echo x > b; rm c; echo n > n", "echo y > b", "ls-files update-index", some},
		{"attributes", "echo '*.x -diff' > .gitattributes", "echo x >> a", "ls-files update-index", "ls-files write-tree update-index diff-index check-attr"},
	}
	program, err := exec.LookPath("git")
	must.OK(t, err)
	bin := t.TempDir()
	(&fixture{t, bin}).program("git", `(while [ "$1" = -c ]; do shift 2; done; echo "$1" >> "${GIT_DIR%/git}/calls"); exec '`+program+`' "$@"`)
	for i, r := range first.copies(t, len(rows)) {
		tt := rows[i]
		t.Run(tt.name, func(t *testing.T) {
			r := r.in(t)
			r.shell("git update-index -q --refresh; touch -t 210001010000 .git/index; " + tt.lay) // written long after the files
			scratch := scratch(t)
			calls := func() string {
				files, err := filepath.Glob(filepath.Join(scratch.Dir, "git-*", "calls"))
				var all strings.Builder
				for _, file := range files {
					data, _ := os.ReadFile(file)
					all.Write(data)
				}
				if err != nil {
					t.Error(err)
				}
				return strings.Join(strings.Fields(all.String()), " ")
			}
			path := os.Getenv("PATH")
			t.Setenv("PATH", bin+":"+path)
			s, err := git.Look(t.Context(), r.dir, &git.Options{Scratch: scratch})
			must.OK(t, err)
			defer s.Remove()
			must.Equal(t, "the look", tt.look, calls())
			t.Setenv("PATH", path)
			r.shell(tt.act)
			if _, _, err = s.Compare(t.Context(), 1<<20); err != nil {
				t.Fatal(err)
			}
			must.Equal(t, "both", strings.TrimSpace(tt.look+" "+tt.compare), calls())
		})
	}
}
