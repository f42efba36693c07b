package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/shellword"
)

// Rule is what a person allowed for all later questions about commands. A rule has no power of
// its own: it allows a question only if [Propose] would propose the same rule, or a narrower
// one, for that question now. See [Covers].
type Rule struct {
	// Prefix is the beginning of the argv of commands, such as git push.
	Prefix []string `json:"prefix,omitzero"`
	// Exact is the whole argv of one command.
	Exact []string `json:"exact,omitzero"`
	// Content is a sum of what an exact command names, and of the configuration of git for a
	// command of git outside the sandbox. When it changes, the rule no longer counts.
	Content string `json:"content,omitzero"`
	// Patches is a folder of a rule about patches, which earlier versions proposed. Such a rule
	// allows nothing: no name of a file tells whether another program runs the file or an agent
	// obeys it.
	Patches string `json:"patches,omitzero"`
	// Folder is the folder, without links, in which the rule applies: that of an exact
	// command, otherwise a repository. "" means everywhere.
	Folder string `json:"folder,omitzero"`
	// Outside lets the command run outside the sandbox.
	Outside bool `json:"outside,omitzero"`
}

// Proposal is a rule that a person may accept with the answer to a question.
type Proposal struct {
	Rule Rule
	// Words say what the rule allows, as a clause after "always allow": "commands that begin
	// with `git push` in /work, outside the sandbox".
	Words string
	// Confined is true if every command that the rule allows runs in the sandbox.
	Confined bool
}

// Propose returns the rule that the question about a command may offer. It returns false if
// no rule covers the command and nothing dangerous.
//
// A proposal is made before the question is shown, and kept until the answer: the rule
// is what a person saw, whatever has changed since.
func Propose(q *protocol.ExecApprovalRequest) (Proposal, bool) {
	p, err := Explain(q)
	return p, err == nil
}

// Explain is [Propose] with the reason why there is no proposal.
func Explain(q *protocol.ExecApprovalRequest) (Proposal, error) {
	rules, err := needs(q, !q.Confinable)
	if err != nil {
		return Proposal{}, err
	}
	if len(rules) != 1 {
		return Proposal{}, errors.New("the script has commands that need different rules")
	}
	return newProposal(rules[0])
}

func newProposal(r Rule) (Proposal, error) {
	words := r.Words()
	if len(words) > maxRuleWords || strings.ContainsFunc(words, isUnseen) {
		return Proposal{}, errors.New("a person could not read the rule: it is too long, or its folder has unusual characters")
	}
	return Proposal{Rule: r, Words: words, Confined: !r.Outside}, nil
}

// isUnseen reports whether a person would not see a character.
func isUnseen(c rune) bool {
	return !unicode.IsPrint(c) || c == unicode.ReplacementChar || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, c)
}

// maxRuleWords is the length of the longest rule that is proposed, in bytes.
const maxRuleWords = 400

// Everywhere returns the same proposal for all folders. It returns false if the rule depends
// on its folder.
func (p Proposal) Everywhere() (Proposal, bool) {
	r := p.Rule
	if len(r.Prefix) == 0 || r.Content != "" || r.Folder == "" {
		return Proposal{}, false
	}
	r.Folder = ""
	wide, err := newProposal(r)
	return wide, err == nil
}

// Words returns what the rule allows, as in [Proposal].
func (r Rule) Words() string {
	where, how := "in "+shellword.Quote(r.Folder), "in the sandbox"
	if r.Folder == "" {
		where = "in every folder"
	}
	if r.Outside {
		how = "outside the sandbox"
	}
	switch {
	case r.Patches != "":
		return "nothing: an earlier version accepted patches below " + shellword.Quote(r.Patches)
	case len(r.Exact) > 0:
		return fmt.Sprintf("exactly `%s` %s, %s, while the files that it names are unchanged", shellword.Join(r.Exact), where, how)
	case r.Content != "":
		return fmt.Sprintf("commands that begin with `%s` %s, %s, while the configuration of git there is unchanged", shellword.Join(r.Prefix), where, how)
	}
	return fmt.Sprintf("commands that begin with `%s` %s, %s", shellword.Join(r.Prefix), where, how)
}

// Covers reports whether the rules together allow a command, and whether it may then run only
// in the sandbox.
func Covers(rules []Rule, q *protocol.ExecApprovalRequest) (confined, ok bool) {
	covered := func(outside bool) bool {
		needed, err := needs(q, outside)
		return err == nil && len(needed) > 0 && !slices.ContainsFunc(needed, func(need Rule) bool {
			return !slices.ContainsFunc(rules, func(r Rule) bool { return r.covers(need) })
		})
	}
	if len(rules) == 0 {
		return false, false
	}
	if covered(true) {
		return false, true
	}
	confined = q.Confinable && covered(false)
	return confined, confined
}

// covers reports whether r is the rule other, or a wider one.
func (r Rule) covers(other Rule) bool {
	if r.Folder == "" && len(r.Prefix) > 0 {
		other.Folder = ""
	}
	return r.Equal(other)
}

// Equal reports whether two rules are the same.
func (r Rule) Equal(other Rule) bool {
	return slices.Equal(r.Prefix, other.Prefix) && slices.Equal(r.Exact, other.Exact) && r.Content == other.Content &&
		r.Patches == other.Patches && r.Folder == other.Folder && r.Outside == other.Outside
}

// needs returns the rules that together allow a command, each once.
func needs(q *protocol.ExecApprovalRequest, outside bool) ([]Rule, error) {
	dir, err := filepath.EvalSymlinks(q.Cwd)
	switch {
	case !q.Placed:
		return nil, errors.New("the engine does not say which files the command names")
	case err != nil || !filepath.IsAbs(dir):
		return nil, errors.New("its folder is not found")
	}
	argv := q.Judged
	if argv == nil {
		argv = q.Command
	}
	commands, plain := Commands(argv)
	switch {
	case !plain || len(commands) == 0:
		return nil, errors.New("it is more than plain commands: a rule covers no other syntax of a shell")
	case q.Replaceable: // so is every script that is not plain
		return nil, errors.New("a program that it names may change, or is not found")
	}
	var rules []Rule
	for _, c := range commands {
		if len(commands) > 1 && !outside && c[0] != "cd" && safeStrict(wordsOf(c)) {
			continue
		}
		r, err := need(c, q, dir, outside)
		if errors.Is(err, errExact) && len(commands) == 1 {
			r, err = exactly(argv, c, q, dir, outside)
		}
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(rules, r.Equal) {
			rules = append(rules, r)
		}
	}
	return rules, nil
}

func wordsOf(argv []string) []Word {
	words := make([]Word, len(argv))
	for i, text := range argv {
		words[i] = Word{Text: text}
	}
	return words
}

// errExact means that a command has no prefix that a rule may have.
var errExact = errors.New("no beginning of the command is safe with every later word")

// need returns the rule by the beginning of a command. The error is errExact if only the
// exact words may be allowed.
func need(argv []string, q *protocol.ExecApprovalRequest, dir string, outside bool) (Rule, error) {
	if err := mayRepeat(argv, dir); err != nil {
		return Rule{}, err
	}
	a, prefix, args := actionOf(argv)
	if a == nil || !a.takes(args) {
		return Rule{}, errExact
	}
	r := Rule{Prefix: prefix, Folder: repositoryOf(dir), Outside: outside}
	if outside {
		if !a.outside {
			return Rule{}, errExact
		}
		if r.Content = q.Unasked.Setup; r.Content == "" {
			return Rule{}, notUnasked(q)
		}
	}
	return r, nil
}

// exactly returns the rule for exactly these words. The only command is that of argv, or of
// its script.
func exactly(argv, command []string, q *protocol.ExecApprovalRequest, dir string, outside bool) (Rule, error) {
	if !outside {
		if q.Content == "" {
			return Rule{}, errors.New("no approval of these words lasts: they name a folder, or have a character that a shell may expand")
		}
		return Rule{Exact: argv, Content: q.Content, Folder: dir}, nil
	}
	name := programName(command[0])
	switch a, _, _ := actionOf(command); {
	case (a == nil || !a.outside) && (a != nil || listed(builders, name) || listed(interpreters, name)):
		return Rule{}, fmt.Errorf("outside the sandbox %s would run files that its words do not name", name)
	case q.Unasked.Sum == "":
		return Rule{}, notUnasked(q)
	}
	return Rule{Exact: argv, Content: q.Unasked.Sum, Folder: dir, Outside: true}, nil
}

// notUnasked is why a command must not run outside the sandbox without a question.
func notUnasked(q *protocol.ExecApprovalRequest) error {
	if q.Unasked.Why != "" {
		return errors.New(q.Unasked.Why)
	}
	return errors.New("outside the sandbox it could start what a command wrote, or send elsewhere")
}

// repositoryOf returns the folder of the repository that dir is in, or dir itself if it is in
// none. The home directory and the root count as none, because everything is below them.
func repositoryOf(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if at == filepath.Dir(at) || isHome(at) {
			return dir
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
	}
}

func isHome(dir string) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	a, errA := os.Stat(home)
	b, errB := os.Stat(dir)
	return errA == nil && errB == nil && os.SameFile(a, b)
}
