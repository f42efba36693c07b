package rulefile

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/internal/shellword"
)

// Rule lets the commands with exact words in one folder, or with a beginning, run in the sandbox without a question, or
// all commands there reach a host.
type Rule struct {
	// Exact is the whole argv of a command.
	Exact []string `json:"exact,omitzero"`
	// Folder is the folder of an exact command, absolute and without links.
	Folder string `json:"folder,omitzero"`
	// Prefix is the beginning of the argv of commands in every folder, such as go test.
	Prefix []string `json:"prefix,omitzero"`
	// Host is a host that commands in the sandbox may reach, a name in lower case.
	Host string `json:"host,omitzero"`
}

// maxWords is the length of the longest rule that is offered, in bytes.
const maxWords = 400

// ErrNone is the error of a question that may offer no rule.
var ErrNone = errors.New("no rule can be offered")

// Action is what a rule may allow: a command with these words in this folder, in the sandbox, or else a host that
// commands in the sandbox reach. The zero value is nothing.
type Action struct {
	// Command is the argv, and Cwd its folder.
	Command []string
	Cwd     string
	// Hostname is a name in lower case.
	Hostname string
}

// isZero reports whether it is nothing.
func (a Action) isZero() bool { return a.Hostname == "" && len(a.Command) == 0 }

// Offer returns the rule that a question may offer. The error is [ErrNone] if there is none, or a person could not read
// the rule. Any other says why the folder of a command cannot be found.
func Offer(a Action) (Rule, error) {
	if a.isZero() {
		return Rule{}, ErrNone
	}
	r, err := exactly(a)
	words := r.Words()
	if err == nil && (r.check() != nil || len(words) > maxWords || strings.ContainsFunc(words, isUnseen)) {
		err = ErrNone
	}
	return r, err
}

func isUnseen(c rune) bool {
	return !unicode.IsPrint(c) || c == unicode.ReplacementChar ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, c)
}

// Words returns what the rule allows, as a clause after "always allow".
func (r Rule) Words() string {
	show := func(words ...string) string { return shellword.Show(runtime.GOOS, words...) }
	switch {
	case r.Host != "":
		return "the host " + show(r.Host) + " for all commands, in the sandbox"
	case len(r.Exact) > 0:
		return "exactly `" + show(r.Exact...) + "` in " + show(r.Folder) + ", in the sandbox"
	}
	return "commands that begin with `" + show(r.Prefix...) + "` in every folder, in the sandbox"
}

// check returns an error for a rule that is not one of the three kinds.
func (r Rule) check() error {
	switch host, err := decide.Host(r.Host); {
	case r.Host != "" && (err != nil || host != r.Host):
		return errors.New("want a host in lower case")
	case r.Host != "" && len(r.Exact)+len(r.Prefix)+len(r.Folder) > 0,
		r.Host == "" && (len(r.Exact) > 0) == (len(r.Prefix) > 0):
		return errors.New("want one of exact, prefix and host")
	case len(r.Exact) > 0 && !filepath.IsAbs(r.Folder):
		return errors.New("want the folder of an exact command")
	case len(r.Prefix) > 0 && r.Folder != "":
		return errors.New("want no folder with prefix")
	}
	return nil
}

func (r Rule) equal(other Rule) bool {
	return slices.Equal(r.Exact, other.Exact) && r.Folder == other.Folder &&
		slices.Equal(r.Prefix, other.Prefix) && r.Host == other.Host
}

// exactly returns the rule that is about a host, or the exact words and the folder of a command.
func exactly(a Action) (Rule, error) {
	if a.Hostname != "" {
		return Rule{Host: a.Hostname}, nil
	}
	dir, err := filepath.EvalSymlinks(a.Cwd)
	return Rule{Exact: a.Command, Folder: dir}, err
}
