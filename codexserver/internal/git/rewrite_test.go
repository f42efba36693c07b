package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestRewrites writes files of each state again, with as many bytes and within a second, half of them with their time of
// before. At night it does so with 750 files of each state.
func TestRewrites(t *testing.T) {
	states := []string{"clean", "dirty", "staged", "untracked", "hidden", "assumed"}
	const each = 25
	names := func(state string) (list []string) {
		for i := range each {
			list = append(list, fmt.Sprintf("%s/%02d", state, i))
		}
		return list
	}
	for range nightly.Number(1, 30) {
		r := newRepo(t)
		write := func(state, text string) {
			for i, name := range names(state) {
				if r.write(name, text); i%2 > 0 {
					r.age(name, time.Hour)
				}
			}
		}
		for _, state := range states {
			if state != "untracked" {
				write(state, "one\n")
			}
		}
		r.commit("first")
		write("staged", "two\n")
		r.git("add", "staged")
		write("dirty", "two\n")
		write("untracked", "two\n")
		r.git(append([]string{"update-index", "--skip-worktree"}, names("hidden")...)...)
		r.git(append([]string{"update-index", "--assume-unchanged"}, names("assumed")...)...)
		s := take(t, r.dir)
		var want strings.Builder
		for i := range each {
			for _, state := range states {
				name := names(state)[i]
				file := filepath.Join(r.dir, name)
				info := must.Get(os.Stat(file))(t)
				r.write(name, "six\n")
				if i%2 > 0 {
					must.OK(t, os.Chtimes(file, info.ModTime(), info.ModTime()))
				}
			}
		}
		for _, state := range []string{"assumed", "clean", "dirty", "hidden", "staged", "untracked"} {
			for _, name := range names(state) {
				want.WriteString("update >" + name + " +-\n")
			}
		}
		must.Equal(t, "the changes", want.String(), changes(t, s))
	}
}
