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
	"github.com/codexmcp/codexmcp/elicit"
)

// The tables list the beginnings of commands. The user is asked about all others.
var (
	// allowed commands read or test. They run with these options and no others.
	allowed = map[string]string{
		"ls": `-[1AFRahlrt]+`, "cat": `-[bns]+`, "head": `-n?\d*`, "tail": `-n?\d*`, "wc": `-[clw]+`,
		"grep":       `-[Einrvwc]+`,
		"git status": `-[bsu]+`, "git diff": `--(stat|cached)`, "git log": `-\d+|--oneline`,
		"go test": `-(v|race|short|count=\d+|run=\w+)`, "cargo test": ``, "npm test": ``,
	}
	// writers change the files that they name.
	writers = []string{"cp", "mv", "rm", "mkdir", "rmdir", "touch", "tee", "truncate", "chmod", "chown", "ln"}
	// network commands need the network.
	network = []string{"curl", "wget", "ssh", "scp", "rsync", "nc", "ping", "git clone", "git fetch", "git pull",
		"git push",
		"go get", "npm install", "pip install"}
)

// policy answers for the user in one folder. The path is absolute and has no links.
type policy struct{ folder string }

// decide is an approval.Rules.Decide; false leaves the question to the user.
func (p policy) decide(_ context.Context, r *approval.Request) (elicit.Outcome, bool) {
	switch q := r.Subject.(type) {
	case approval.Patch:
		for path, change := range q.Changes {
			u := change.Update
			if !p.inside(q.Cwd, path) || u != nil && u.MovePath != nil && !p.inside(q.Cwd, *u.MovePath) {
				return deny(p.outside())
			}
		}
	case approval.Command:
		commands, plain := split(q.Command)
		// Files in the folder say what git and tests start, so they run only in the sandbox.
		runs := plain && q.Confinable && p.inside(q.Cwd, ".")
		for _, c := range commands {
			if why := p.forbids(q.Cwd, c); why != "" { // one forbidden command is enough
				return deny(why)
			}
			runs = runs && p.allows(q.Cwd, c) // all must be allowed
		}
		return elicit.Outcome{Decision: elicit.Approved, Confined: true}, runs
	}
	return elicit.Outcome{}, false
}

// deny refuses a command and sends the model the reason.
func deny(why string) (elicit.Outcome, bool) {
	return elicit.Outcome{Decision: elicit.Denied, Feedback: why}, true
}

func (p policy) outside() string { return "do not change anything outside of " + p.folder }

// forbids returns why a command is denied without a question, or "".
func (p policy) forbids(cwd string, c []string) string {
	c = append([]string{filepath.Base(c[0])}, c[1:]...)
	switch {
	case slices.ContainsFunc(network, func(n string) bool { return begins(c, n) }),
		slices.ContainsFunc(c, func(arg string) bool { return strings.Contains(arg, "://") }):
		return "there is no network here, use the files in " + p.folder
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
			// After a link, .. leads to another folder than its name suggests.
			return slices.Contains(strings.Split(filepath.ToSlash(arg), "/"), "..") || !p.inside(cwd, arg)
		})
	}
	return false
}

func begins(c []string, words string) bool {
	w := strings.Fields(words)
	return len(c) >= len(w) && slices.Equal(c[:len(w)], w)
}

// inside reports whether a path is in the folder after links are resolved. A path that does
// not exist is in the folder if its parent is.
func (p policy) inside(cwd, path string) bool {
	// On Windows C:x and /x are not absolute, and they do not lie below cwd either.
	if filepath.VolumeName(path) == "" && !strings.HasPrefix(filepath.ToSlash(path), "/") {
		path = filepath.Join(cwd, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if parent := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && parent != path && filepath.IsAbs(path) {
		_, noLink := os.Readlink(path) // a link may lead to a path that does not exist
		return noLink != nil && p.inside(cwd, parent)
	}
	rel, outside := filepath.Rel(p.folder, real)
	return err == nil && outside == nil && filepath.IsLocal(rel)
}
