package turn

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// Attempt is one of several attempts, for another process. Attempts are turns that try the same, each in a worktree of its
// own, as one turn of a call: the first of them. It is over when all are, and its result is that of the best.
type Attempt struct {
	// Did is its result if it has ended, whole, else what it did.
	Did protocol.TurnResult `json:"did"`
	// Resume continues it, nil if it has ended.
	Resume *Resume `json:"resume,omitzero"`
}

// Join makes turns that are not queued yet attempts of the first of them, which is the turn of their call. Its state,
// questions and changes are those of all, and an interrupt ends all.
func Join(attempts ...*Turn) {
	first := attempts[0]
	first.attempts = attempts
	for _, other := range attempts[1:] {
		other.now.first = first
	}
}

// all returns the attempts, or the turn alone.
func (t *Turn) all() []*Turn {
	if t.attempts != nil {
		return t.attempts
	}
	return []*Turn{t}
}

// First returns the first of several attempts, or the turn alone.
func (t *Turn) First() *Turn { return cmp.Or(t.now.first, t) }

func (t *Turn) isOver() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over()
}

// together returns the state of all attempts: that of each on one line. A question is the oldest one.
func (t *Turn) together() State {
	const between = "  •  "
	s := State{Status: protocol.StatusRunning}
	var parts []string
	for i, attempt := range t.attempts {
		state := attempt.state()
		if r := attempt.outcome(); r != nil {
			state.Doing = string(r.Status)
		}
		if i == 0 {
			s.Since = state.Since
		}
		if state.Question != "" && (s.Question == "" || state.Asked.Before(s.Asked)) {
			s.Status, s.Asked, s.Where = protocol.StatusWaiting, state.Asked, state.Where
			s.Question = fmt.Sprintf("%s in attempt %d", state.Question, i+1)
		}
		words := plain.OneLine(strings.ReplaceAll(state.Words(), between, " "), maxTogether/len(t.attempts))
		parts = append(parts, fmt.Sprintf("%d %s", i+1, words))
	}
	s.Doing = strings.Join(parts, between)
	return s
}

// maxTogether is how many characters the line of all attempts has.
const maxTogether = 170

// outcome returns the result of this turn alone, nil before there is one.
func (t *Turn) outcome() *Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.result != nil {
		return t.result
	}
	return t.concluded
}

// resumeAll is Resume for the first of several attempts.
func (t *Turn) resumeAll() *Resume {
	t.mu.Lock()
	r, stopped := t.Order.Resume, t.stopped
	r.Began = t.time.first
	t.mu.Unlock()
	if r.Key == "" || stopped {
		return nil
	}
	r.Attempts = make([]Attempt, len(t.attempts))
	for i, attempt := range t.attempts {
		if result := attempt.outcome(); result != nil {
			r.Attempts[i].Did = result.TurnResult
			r.Attempts[i].Did.Fit(max(attempt.Order.Most, protocol.MinResult))
		} else {
			r.Attempts[i] = Attempt{Did: attempt.Did(), Resume: attempt.resume()}
		}
	}
	return &r
}

// Ended gives a turn that is not queued the result that it had in another process. [Turn.End] must follow.
func (t *Turn) Ended(did *protocol.TurnResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fails := did.Status == protocol.StatusFailed || did.Status == protocol.StatusAborted && did.Stopped == ""
	t.status, t.place.thread = ending, did.ThreadID
	t.concluded = &Result{TurnResult: *did, Texts: []string{did.Content}, Fails: fails, where: t.where()}
}

// Choose makes the result of the first of several attempts that of the best, with a list of the others. The others have
// ended; [Turn.End] must follow. For other turns it does nothing.
func (t *Turn) Choose() {
	if t.attempts == nil {
		return
	}
	results := make([]*Result, len(t.attempts))
	order := make([]int, len(t.attempts))
	for i, attempt := range t.attempts {
		if results[i], order[i] = attempt.outcome(), i; results[i] == nil {
			results[i] = broken(attempt.Order.Thread)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return results[a].compare(results[b]) })
	best := *results[order[0]]
	words := []string{fmt.Sprintf("This is the result of attempt %d of %d.", order[0]+1, len(order))}
	if files := touched(&best.TurnResult); len(files) > 0 && best.Check.Passed != nil {
		words = append(words, "It has changed files that its check may read: "+plain.Paths(files)+".")
	}
	for _, i := range order[1:] {
		other := attemptOf(&results[i].TurnResult)
		best.Attempts = append(best.Attempts, other)
		words = append(words, fmt.Sprintf("Attempt %d: %s.", i+1, inShort(other)))
	}
	remark := strings.Join(words, " ")
	best.Texts = append(slices.Clone(best.Texts), remark)
	best.Content = strings.TrimPrefix(best.Content+"\n\n"+remark, "\n\n")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.concluded = &best
}

// compare orders the results of attempts, the best first: what is done; then what passed a check whose files it left alone;
// then fewer refusals; then fewer changed lines.
func (r *Result) compare(other *Result) int {
	return cmp.Or(
		cmp.Compare(slices.Index(ranks, r.Status), slices.Index(ranks, other.Status)),
		cmp.Compare(r.tampers(), other.tampers()),
		cmp.Compare(len(r.Refused)+r.Truncated.Refused, len(other.Refused)+other.Truncated.Refused),
		cmp.Compare(lines(&r.TurnResult), lines(&other.TurnResult)),
	)
}

// ranks are the statuses of turns that have ended, the best first.
var ranks = []protocol.TurnStatus{
	protocol.StatusCompleted, protocol.StatusIncomplete, protocol.StatusAborted, protocol.StatusFailed,
}

// tampers returns 1 for a turn with a check that has changed its files, else 0.
func (r *Result) tampers() int {
	if r.Check.Command == "" {
		return 0
	}
	return min(len(touched(&r.TurnResult)), 1)
}

// touched returns the files that a turn has changed and that may decide whether its check passes: those that say how the
// project is tested, and of those that were there before the tests and those that the check's line names.
func touched(r *protocol.TurnResult) (files []string) {
	var words []string
	between := func(c rune) bool { return strings.ContainsRune(" \t'\"=;&|()", c) }
	for _, word := range strings.FieldsFunc(r.Check.Command, between) {
		words = append(words, path.Base(word))
	}
	for _, c := range r.Changes {
		named := func(file string) bool {
			return file != "" && (checkFiles.Get().MatchString(file) ||
				c.Kind != "add" && (slices.Contains(words, path.Base(file)) || testFiles.Get().MatchString(file)))
		}
		if named(c.Path) || named(c.From) {
			files = append(files, c.Path)
		}
	}
	return files
}

var (
	// checkFiles are files that say how a project is built and tested.
	checkFiles = lazyregexp.Regexp{Text: `(?i)(^|/)((GNU)?Makefile|justfile|Taskfile\.ya?ml|Rakefile|Gruntfile\.\w+|` +
		`gulpfile\.\w+|package\.json|tox\.ini|pytest\.ini|noxfile\.py|conftest\.py|setup\.(py|cfg)|pyproject\.toml|` +
		`Cargo\.toml|build\.(gradle|zig)(\.kts)?|pom\.xml|CMakeLists\.txt|meson\.build|` +
		`(jest|vitest|karma|playwright)\.[\w.]+|\.pre-commit-config\.yaml|\.gitlab-ci\.yml)$|` +
		`(^|/)\.(github|circleci|ci)/`}
	// testFiles are tests.
	testFiles = lazyregexp.Regexp{Text: `(?i)(^|/)(tests?|specs?|__tests__|testdata)/|_test\.\w+$|` +
		`[._-](test|spec)s?\.\w+$|(^|/)test_[^/]*$|Tests?\.(java|kt|cs|swift)$`}
)

// lines returns how many lines a turn has changed.
func lines(r *protocol.TurnResult) (n int) {
	for _, c := range r.Changes {
		if c.Added != nil && c.Removed != nil {
			n += *c.Added + *c.Removed
		}
	}
	return n
}

// attemptOf returns a result in short.
func attemptOf(r *protocol.TurnResult) protocol.Attempt {
	a := protocol.Attempt{
		ThreadID: r.ThreadID, Status: r.Status, Check: r.Check.Passed,
		Files: len(r.Changes) + r.Truncated.Changes, Lines: lines(r),
		Touched: r.Check.Command != "" && len(touched(r)) > 0,
	}
	if w := r.Worktree; w != nil {
		a.Branch, a.Commit = w.Branch, w.Commit[:min(len(w.Commit), shortCommit)]
	}
	if r.Usage != nil {
		a.Tokens = r.Usage.Turn.Input + r.Usage.Turn.Output
	}
	return a
}

// inShort returns an attempt in words, such as "incomplete, the check failed, 2 files and 31 lines changed on codex/1f2e3d4c".
func inShort(a protocol.Attempt) string {
	s := string(a.Status)
	switch {
	case a.Check == nil:
	case *a.Check && a.Touched:
		s += ", the check passed, of which it has changed files"
	case *a.Check:
		s += ", the check passed"
	default:
		s += ", the check failed"
	}
	s += ", " + plain.Counted(a.Files, "file") + " and " + plain.Counted(a.Lines, "line") + " changed"
	if a.Branch != "" {
		s += " on " + a.Branch
	}
	return s
}

// shortCommit is how many digits of a commit are shown.
const shortCommit = 7
