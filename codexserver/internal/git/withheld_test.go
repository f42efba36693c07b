package git_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestWithheld has files whose content is in no diff, under the name that they had before either.
func TestWithheld(t *testing.T) {
	const canary = "canary-77aa"
	withheld := func(path string) error {
		if filepath.Base(path) == ".env" || strings.HasSuffix(path, "/a [b]*.key") {
			return errors.New("withheld")
		}
		return nil
	}
	r := newRepo(t)
	change := func(text string) {
		for _, name := range []string{".env", "sub/.env", "a [b]*.key", "open"} {
			r.write(name, text+"\n"+strings.Repeat("same\n", 20))
		}
	}
	change(canary)
	first := r.commit("first")
	look := must.Get(git.Look(t.Context(), r.dir, &git.Options{Scratch: scratch(t), Withheld: withheld}))(t)
	change("other")
	r.git("mv", "-f", "sub/.env", "plain")
	changes, diff, err := look.Compare(t.Context(), 1<<20)
	must.OK(t, err, look.Remove())
	must.Equal(t, "lines of the canary in the diff of a turn", 1, strings.Count(diff, canary)) // of open
	for _, c := range changes {
		must.Equal(t, "why "+c.Path+" is not shown", c.Path != "open" && (c.Path != "plain" || c.From != ""), c.Why != "")
	}
	for _, target := range []protocol.ReviewTarget{protocol.ReviewUncommitted, protocol.ReviewCommit} {
		revision := ""
		if target == protocol.ReviewCommit {
			revision = first
		}
		c := must.Get(git.Review(t.Context(), r.dir, scratch(t), target, revision, withheld))(t)
		must.Equal(t, string(target)+": lines of the canary", 1, strings.Count(c.Diff, canary))
	}
}
