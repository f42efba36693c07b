package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// The tables know commands by how they begin. What is in none is asked about.
var (
	// allowed read or test, and run with these options and no others.
	allowed = map[string]string{
		"ls": `-[1AFRahlrt]+`, "cat": `-[bns]+`, "head": `-n?\d*`, "tail": `-n?\d*`, "wc": `-[clw]+`, "grep": `-[Einrvwc]+`,
		"git status": `-[bsu]+`, "git diff": `--(stat|cached)`, "git log": `-\d+|--oneline`,
		"go test": `-(v|race|short|count=\d+|run=\w+)`, "cargo test": ``, "npm test": ``,
	}
	// writers change the files that they name.
	writers = []string{"cp", "mv", "rm", "mkdir", "rmdir", "touch", "tee", "truncate", "chmod", "chown", "ln"}
	// network have it in their name.
	network = []string{"curl", "wget", "ssh", "scp", "rsync", "nc", "ping", "git clone", "git fetch", "git pull", "git push",
		"go get", "npm install", "pip install"}
)

// policy answers for the user in one folder, an absolute path without links.
type policy struct{ folder string }

// decide is a approval.Rules.Decide; false leaves the question to the user.
func (p policy) decide(_ context.Context, r *approval.Request) (elicit.Outcome, bool) {
	switch q := r.Event.(type) {
	case protocol.PatchApprovalRequest:
		for path, change := range q.Changes {
			u := change.Update
			if !p.inside(q.Cwd, path) || u != nil && u.MovePath != nil && !p.inside(q.Cwd, *u.MovePath) {
				return deny(p.outside())
			}
		}
	case protocol.ExecApprovalRequest:
		commands, plain := takeApart(q.Command)
		runs := plain && p.inside(q.Cwd, ".")
		for _, c := range commands {
			if why := p.forbids(q.Cwd, c); why != "" { // one is enough
				return deny(why)
			}
			runs = runs && p.allows(q.Cwd, c) // it takes all
		}
		return elicit.Outcome{Decision: elicit.Approved}, runs
	}
	return elicit.Outcome{}, false
}

// deny refuses a command and sends the model the reason.
func deny(why string) (elicit.Outcome, bool) {
	return elicit.Outcome{Decision: elicit.Denied, Feedback: why}, true
}

func (p policy) outside() string { return "leave alone what is outside of " + p.folder }

// forbids says why a command is not even asked about, "" if it may be.
func (p policy) forbids(cwd string, c []string) string {
	c = append([]string{filepath.Base(c[0])}, c[1:]...)
	switch {
	case slices.ContainsFunc(network, func(n string) bool { return begins(c, n) }),
		slices.ContainsFunc(c, func(arg string) bool { return strings.Contains(arg, "://") }):
		return "there is no network here, work with what is in " + p.folder
	case slices.Contains(writers, c[0]) && slices.ContainsFunc(c[1:], func(arg string) bool {
		return !strings.HasPrefix(arg, "-") && !p.inside(cwd, arg)
	}):
		return p.outside()
	}
	return ""
}

// allows reports whether a command only reads or tests, and only in the folder.
func (p policy) allows(cwd string, c []string) bool {
	for beginning, options := range allowed {
		if !begins(c, beginning) {
			continue
		}
		option := regexp.MustCompile(`^(` + options + `)$`)
		return !slices.ContainsFunc(c[len(strings.Fields(beginning)):], func(arg string) bool {
			if strings.HasPrefix(arg, "-") {
				return !option.MatchString(arg)
			}
			// After a link .. is not where it seems to be.
			return slices.Contains(strings.Split(filepath.ToSlash(arg), "/"), "..") || !p.inside(cwd, arg)
		})
	}
	return false
}

func begins(c []string, words string) bool {
	w := strings.Fields(words)
	return len(c) >= len(w) && slices.Equal(c[:len(w)], w)
}

// inside reports whether a path lies in the folder, links resolved. What is not
// there yet lies where its parent does.
func (p policy) inside(cwd, path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if parent := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && parent != path && filepath.IsAbs(path) {
		_, noLink := os.Readlink(path) // a link may lead to what is not there
		return noLink != nil && p.inside(cwd, parent)
	}
	rel, outside := filepath.Rel(p.folder, real)
	return err == nil && outside == nil && filepath.IsLocal(rel)
}
