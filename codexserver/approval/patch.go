package approval

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// A Patch is a [Subject]: whether changes to files may be made.
type Patch struct {
	CallID string
	// Changes is the patch by absolute path, with symbolic links resolved.
	Changes map[string]protocol.FileChange
	// Links has an entry for each path in Changes and each MovePath that the patch names through symbolic links: the
	// path as the patch names it.
	Links map[string]string
	// Reason is the model's or the engine's, "" without one.
	Reason string
	// GrantRoot is a folder. If the patch is approved for the session, later patches below it need no approval.
	GrantRoot string
	// Asker is who asks when it is not the engine itself, such as a sub-agent.
	Asker string
	// Cwd is the conversation's folder. The question marks changes outside of it.
	Cwd string
	// Once is true when the patch cannot be approved for the session.
	Once bool
	// Notes are the engine's sentences about the changes.
	Notes []string
	// Why has an entry for each path in Changes of which the engine says why it deserves attention, such as "other
	// programs run it". The question lists such files first.
	Why map[string]string
}

// Facts implements [Action].
func (p Patch) Facts(content bool) Facts {
	return Facts{Kind: KindPatch, Cwd: p.Cwd, Changes: changeFacts(p.Changes, content)}
}

// Refusal implements [Action].
func (p Patch) Refusal() protocol.Refusal {
	return protocol.Refusal{Kind: string(KindPatch), What: plain.Paths(slices.Sorted(maps.Keys(p.Changes)))}
}

// Call implements [Subject].
func (p Patch) Call() string { return p.CallID }

// Effect implements [Subject].
func (p Patch) Effect() Effect { return Begins }

// Approver implements [Subject].
func (p Patch) Approver() Approver { return Anyone }

// Each implements [Subject].
func (p Patch) Each(*Rules) bool { return false }

// Rule implements [Subject]. No list is about changes.
func (p Patch) Rule(*Rules, bool) (out elicit.Outcome, decides bool) { return out, false }

// Lasting implements [Subject].
func (p Patch) Lasting() Lasting { return Lasting{} }

// Unasked implements [Subject].
func (p Patch) Unasked() string { return "" }

// Complete implements [Subject]. It also says why files deserve attention by their names.
func (p Patch) Complete(bool) Subject {
	p.Why = p.why()
	return p
}

// Name implements [Subject].
func (p Patch) Name() string { return "changes to files" }

// Whole implements [Subject].
func (p Patch) Whole() []string { return nil }

// Meta implements [Subject].
func (p Patch) Meta() map[string]any {
	m := map[string]any{"kind": "patch", "callId": p.CallID, "changes": p.Changes}
	if p.Reason != "" {
		m["reason"] = p.Reason
	}
	return m
}

// Codex implements [Subject].
func (p Patch) Codex() *Codex {
	m := map[string]any{"codex_elicitation": "patch-approval", "codex_call_id": p.CallID, "codex_changes": p.Changes}
	if p.Reason != "" {
		m["codex_reason"] = p.Reason
	}
	if p.GrantRoot != "" {
		m["codex_grant_root"] = p.GrantRoot
	}
	return &Codex{Members: m, Method: "applyPatchApproval", Params: func(conversation string) any {
		return protocol.ApplyPatchApprovalParams{
			ConversationID: conversation, CallID: p.CallID,
			FileChanges: p.Changes, Reason: p.Reason, GrantRoot: p.GrantRoot,
		}
	}}
}

// Event implements [Subject].
func (p Patch) Event() protocol.EventMsg {
	return protocol.PatchApprovalRequest{CallID: p.CallID, Changes: p.Changes, Reason: p.Reason, GrantRoot: p.GrantRoot}
}

// Show implements [Subject].
func (p Patch) Show(v View) { v.Patch(p) }

// Question implements [Subject].
//
// Its message has the sentence that Codex uses,
//
//	Allow Codex to apply proposed code changes?
//
// with the reason before it, if there is one, and the files after it, those first that deserve attention. Changes
// outside of the folder are marked. Only p.Notes and the words in p.Why can pass for words of the asking program. There
// is no approval for the session if there are more changes than a message lists. See [Command.Question] for the rest.
func (p Patch) Question(engine, home string) *elicit.Question { return p.form(engine, home).question() }

// form returns what is asked.
func (p Patch) form(engine, home string) *patchForm {
	form := &patchForm{p, engine, home, make([]change, 0, len(p.Changes))}
	for _, path := range slices.Sorted(maps.Keys(p.Changes)) {
		f := p.Changes[path]
		c := change{Path: path, Via: p.Links[path], Kind: f.Kind(), Diff: f.Diff(), Why: p.Why[path]}
		c.Added, c.Removed = f.Lines()
		c.Replaces = f.Replaces()
		if c.MoveTo = f.MovedTo(); c.MoveTo != "" {
			c.MoveVia, c.Why = p.Links[c.MoveTo], cmp.Or(c.Why, p.Why[c.MoveTo])
		}
		form.changes = append(form.changes, c)
	}
	return form
}

// patchForm is what is asked.
type patchForm struct {
	Patch
	engine, home string
	changes      []change // in the order in which to show them
}

// change is what would happen to one file.
type change struct {
	Kind           string
	Path, MoveTo   string // relative to the folder or absolute; MoveTo is "" unless an update moves the file
	Via, MoveVia   string // the paths in the patch, if symbolic links lead from them to the others
	Added, Removed int    // lines; shown when one of them is set
	Replaces       bool   // what is at MoveTo, or at Path
	Diff           string // as [protocol.FileChange.Diff] returns it
	Why            string // why the file deserves attention
}

const (
	// maxChanges is how many changes a message lists.
	maxChanges = 40
	// maxNamed is how many of those a message lists that have a reason.
	maxNamed = 400
	// maxList is how many characters the lines of changes have together, without those of their
	// content, if there is more than one.
	maxList = 32_000
	// maxDiff is how many lines of all changes a message shows, and maxFileDiff of one.
	maxDiff     = 120
	maxFileDiff = 20
)

// DiffIndent is before each line of a change in the message of a [Patch.Question], and before no
// other.
const DiffIndent = "  "

// question builds the question.
func (p *patchForm) question() *elicit.Question {
	var lines []string
	if p.Reason != "" {
		lines = append(lines, reasonLine(p.Reason))
	}
	first := len(lines)
	asks := func(who string) string { return "Allow " + who + " to apply proposed code changes?" }
	lines = append(lines, asks(subject(p.Asker, p.engine)))
	changes, named, _ := p.sorted()
	shown := len(changes)
	if shown > maxChanges {
		shown = min(max(maxChanges, named), maxNamed)
	}
	each, partial, room := p.share(), false, maxList
	for i, change := range changes[:shown] {
		line := "- " + p.describe(change, p.place)
		if room -= utf8.RuneCountInString(line); room < 0 && i > 0 {
			shown = i
			break
		}
		diff, whole := change.diff(each)
		lines = append(append(lines, line), diff...)
		partial = partial || !whole
	}
	if left := len(changes) - shown; left > 0 {
		more := fmt.Sprintf("- and %s more (%s in all)", plain.Thousands(left), plain.Thousands(len(changes)))
		switch alike := named - shown; {
		case alike > 0:
			more += fmt.Sprintf(", of which %s are like those above", plain.Thousands(alike))
		case p.unusual(changes[shown-1]):
			more += ", which may be outside the workspace too"
		}
		if lost := lossy(changes[shown:]); lost > 0 {
			more += fmt.Sprintf("; %s of them delete or replace what is there", plain.Thousands(lost))
		}
		lines = append(lines, more)
		partial = true
	}
	for _, note := range p.Notes {
		lines = append(lines, plain.Line(note))
	}
	message := strings.Join(lines, "\n")
	lines[first] = asks(subject(p.Asker, ""))
	return &elicit.Question{
		Message: message,
		Older:   strings.Join(lines, "\n"),
		Brief:   p.brief(),
		Partial: partial,
		Once:    shown < len(changes) || len(changes) > maxChanges || p.Once,
		NotDone: "the changes were not applied",
	}
}

// share returns how many lines of a change the message shows: none if there are more changes than
// it lists.
func (p *patchForm) share() int {
	n := 0
	for _, c := range p.changes {
		if c.Diff != "" {
			n++
		}
	}
	if n == 0 || len(p.changes) > maxChanges {
		return 0
	}
	return min(maxFileDiff, maxDiff/n)
}

// diff returns the first lines of a change as a block of code, and how many there are besides.
func (c change) diff(most int) (shown []string, whole bool) {
	rest := strings.TrimSuffix(c.Diff, "\n")
	more := rest != ""
	whole = true
	for row := ""; more && len(shown) < most; {
		row, rest, more = strings.Cut(rest, "\n")
		row = plain.Text(row)
		cut := plain.Clip(row, 160, 40)
		shown, whole = append(shown, DiffIndent+cut), whole && cut == row
	}
	if len(shown) == 0 {
		return nil, !more
	}
	mark := strings.Repeat("`", max(3, plain.Backticks(strings.Join(shown, "\n"))+1))
	shown = slices.Concat([]string{DiffIndent + mark + "diff"}, shown, []string{DiffIndent + mark})
	if more {
		shown = append(shown, DiffIndent+"and "+plain.Counted(strings.Count(rest, "\n")+1, "more line"))
	}
	return shown, whole && !more
}

// sorted returns the changes with those first that have a reason, then the other unusual ones, then those that lose a
// file. Named are the first, unusual the first two.
func (p *patchForm) sorted() (changes []change, named, unusual int) {
	var strange, losses, others []change
	for _, c := range p.changes {
		switch {
		case c.Why != "":
			changes = append(changes, c)
		case p.unusual(c):
			strange = append(strange, c)
		case c.loses():
			losses = append(losses, c)
		default:
			others = append(others, c)
		}
	}
	return slices.Concat(changes, strange, losses, others), len(changes), len(changes) + len(strange)
}

// loses reports whether a change deletes or replaces a file.
func (c change) loses() bool { return c.Replaces || c.Kind == "delete" }

// losses returns lines about the changes that delete or replace a file.
func (p *patchForm) losses() (lines []string) {
	changes, each := slices.DeleteFunc(slices.Clone(p.changes), func(c change) bool { return !c.loses() }), p.share()
	for _, c := range changes[:min(len(changes), maxChanges)] {
		diff, _ := c.diff(each)
		lines = append(append(lines, "- "+p.describe(c, p.place)), diff...)
	}
	if more := len(changes) - maxChanges; more > 0 {
		lines = append(lines, fmt.Sprintf("- and %s more that delete or replace what is there", plain.Thousands(more)))
	}
	return lines
}

// lossy returns how many changes delete or replace a file.
func lossy(changes []change) (n int) {
	for _, c := range changes {
		if c.loses() {
			n++
		}
	}
	return n
}

// brief builds the question for a client that cuts messages: how many files, where, and their
// names.
func (p *patchForm) brief() *elicit.Brief {
	files, out := "Change "+plain.Thousands(len(p.changes))+" files", 0
	if len(p.changes) == 1 {
		files = "Change a file"
	}
	for _, c := range p.changes {
		if p.leaves(c.Path) || p.leaves(c.MoveTo) {
			out++
		}
	}
	switch out {
	case 0:
		files += " in "
	case len(p.changes):
		files += " outside of "
	default:
		files += ", " + plain.Thousands(out) + " outside of "
	}
	first, whole, hidden := briefFirst(files, p.Cwd, p.home)
	also := briefAlso(p.Asker, hidden, p.Notes)
	changes, _, unusual := p.sorted()
	b := &elicit.Brief{Reason: briefReason(p.Reason), Home: p.home}
	b.Lines, b.Partial = briefBody(first, whole, also, func(lines int) ([]string, bool) {
		shown, whole := p.briefChanges(changes, unusual, lines)
		diff, all := briefDiff(changes, lines-len(shown))
		if !whole || !all {
			return shown, false
		}
		return append(shown, diff...), true
	})
	if !b.Partial {
		b.Confined = first
	}
	return b
}

// briefDiff returns the lines of all changes, if there are no more than that.
func briefDiff(changes []change, lines int) (shown []string, whole bool) {
	for _, c := range changes {
		if c.Diff == "" {
			continue
		}
		for row := range strings.SplitSeq(strings.TrimSuffix(c.Diff, "\n"), "\n") {
			row, as := plain.Unmarked(plain.Text(strings.ReplaceAll(row, "\t", "    ")))
			row = plain.Span(row)
			if !as || plain.Columns(row) > plain.MaxColumns || len(shown) == lines {
				return nil, false
			}
			shown = append(shown, row)
		}
	}
	return shown, true
}

// briefChanges lists changes on at most that many lines, no name broken by one.
func (p *patchForm) briefChanges(changes []change, unusual, lines int) (shown []string, whole bool) {
	entries := make([]string, len(changes))
	whole = true
	for i, c := range changes {
		entry, as := plain.Unmarked(p.describe(c, p.briefPlace))
		from, to, isMove := strings.Cut(entry, moves)
		tooWide := plain.Columns(entry) >= plain.MaxColumns && !strings.Contains(to, moves)
		if isMove && len(changes) == 1 && lines > 1 && tooWide {
			from, isWhole := plain.Part(from+strings.TrimRight(moves, " "), plain.MaxColumns)
			to, all := plain.Part(to, plain.MaxColumns)
			return []string{from, to}, as && isWhole && all
		}
		if entries[i] = entry; plain.Columns(entry) >= plain.MaxColumns {
			entries[i], as = p.briefEntry(c), false
		}
		whole = whole && as
	}
	shown, n := pack(entries, lines)
	if n == len(entries) {
		return shown, whole
	}
	for ; n >= 0; n-- {
		more := fmt.Sprintf("⟨%s more files⟩", plain.Thousands(len(entries)-n))
		if alike := unusual - n; alike > 0 && n > 0 {
			more = fmt.Sprintf("⟨%s more files, %s like these⟩",
				plain.Thousands(len(entries)-n), plain.Thousands(alike))
		}
		if n == 1 && lines == 1 {
			entries[0] = plain.Within(entries[0], plain.MaxColumns-plain.Columns(", "+more))
		}
		all := append(slices.Clone(entries[:n]), more)
		if shown, n := pack(all, lines); n == len(all) {
			return shown, false
		}
	}
	return nil, false
}

// briefEntry returns a change that is too wide for a line, without what matters least: how many lines it
// has, then why it deserves attention, then the beginning of its path.
func (p *patchForm) briefEntry(c change) string {
	c.Added, c.Removed = 0, 0
	for _, c.Why = range []string{c.Why, ""} {
		if entry, _ := plain.Unmarked(p.describe(c, p.briefPlace)); plain.Columns(entry) < plain.MaxColumns {
			return entry
		}
	}
	if c.MoveTo == "" {
		c.Via = ""
		if entry, _ := plain.Unmarked(p.describe(c, p.briefPlace)); plain.Columns(entry) < plain.MaxColumns {
			return entry
		}
		frame := plain.Columns(p.describe(c, func(string) string { return p.outsideMark(c.Path) }))
		return p.describe(c, func(string) string {
			shown, _ := plain.Path(filepath.Clean(c.Path))
			shown, _ = plain.Unmarked(shown)
			return plain.Omit(shown, "", plain.MaxColumns-1-frame) + p.outsideMark(c.Path)
		})
	}
	entry, _ := plain.Unmarked(p.describe(c, p.briefPlace))
	return plain.Within(entry, plain.MaxColumns-1)
}

// pack joins as many entries as fit on lines of a brief question. Each is shorter than a line.
func pack(entries []string, lines int) (packed []string, n int) {
	for _, entry := range entries {
		last := len(packed) - 1
		switch {
		case last >= 0 && plain.Columns(packed[last]+", "+entry) < plain.MaxColumns:
			packed[last] += ", " + entry
		case len(packed) == lines:
			return packed, n
		default:
			if last >= 0 {
				packed[last] += ","
			}
			packed = append(packed, entry)
		}
		n++
	}
	return packed, n
}

// briefPlace returns a path below the workspace from there, any other as place does.
func (p *patchForm) briefPlace(path string) string {
	path, home, mark := filepath.Clean(path), p.home, p.outsideMark(path)
	if p.Cwd != "" && mark == "" {
		home = ""
		if rel, err := filepath.Rel(p.Cwd, path); err == nil && filepath.IsAbs(path) {
			path = rel
		}
	}
	shown, hidden := briefPath(path, home)
	if hidden {
		shown += " " + plain.Hidden
	}
	return shown + mark
}

// unusual reports whether a change goes through links or leaves the workspace.
func (p *patchForm) unusual(c change) bool {
	return c.Via != "" || c.MoveVia != "" || p.leaves(c.Path) || p.leaves(c.MoveTo)
}

// leaves reports whether a path lies outside of the workspace. "" does not.
func (p *patchForm) leaves(path string) bool {
	return path != "" && p.Cwd != "" && outside(p.Cwd, filepath.Clean(path))
}

// moves stands between the two names of a change that moves a file.
const moves = " and move it to "

// replacing stands behind the new name of a file that moves over another one.
const replacing = ", which replaces what is there"

// describe says what a change does, with paths as place shows them, and why it deserves attention. A path is preceded
// by the path whose links lead to it, if there is one.
func (p *patchForm) describe(c change, place func(string) string) string {
	led := func(via, path string) string {
		if via == "" {
			return place(path)
		}
		return codePath(via) + " → " + place(path)
	}
	kind := plain.Line(plain.Clip(c.Kind, 20, 0))
	if c.Replaces && c.MoveTo == "" {
		kind = "replace"
	}
	line := kind + " " + led(c.Via, c.Path)
	if c.MoveTo != "" {
		line += moves + led(c.MoveVia, c.MoveTo)
	}
	if c.Replaces && c.MoveTo != "" {
		line += replacing
	}
	if c.Added != 0 || c.Removed != 0 {
		line += fmt.Sprintf(" (+%d -%d)", c.Added, c.Removed)
	}
	if c.Why != "" {
		line += ": " + plain.Line(c.Why)
	}
	return line
}

// codePath returns the cleaned path in a code span.
func codePath(path string) string {
	shown, hidden := plain.Path(filepath.Clean(path))
	shown = plain.Code(plain.Clip(shown, plain.PathHead, plain.PathTail))
	if hidden {
		shown += " " + plain.Hidden
	}
	return shown
}

// place returns a path, marked if it leaves the workspace.
func (p *patchForm) place(path string) string { return codePath(path) + p.outsideMark(path) }

// outsideMark is what follows a path that leaves the workspace, "" after any other.
func (p *patchForm) outsideMark(path string) string {
	if p.leaves(path) {
		return " (outside the workspace)"
	}
	return ""
}

// outside reports whether a clean path, relative to root or absolute, lies
// outside of root by its name alone.
func outside(root, path string) bool {
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return true
		}
		path = rel
	}
	return !filepath.IsLocal(path)
}
