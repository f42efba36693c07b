package elicit

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// A PatchQuestion asks whether changes to files may be made.
//
// Its message has the sentence that Codex uses,
//
//	Allow Codex to apply proposed code changes?
//
// with the reason before it, if there is one, and the files after it. As in an
// ExecQuestion, only Notes can pass for words of the asking program.
type PatchQuestion struct {
	// Subject is who wants to make the changes. Empty means "Codex".
	Subject string
	// Changes are the files, in the order in which to show them.
	Changes []Change
	// Cwd is the folder that relative paths start from. If it is set, changes outside of it
	// are marked. Only names are compared: the caller follows symbolic links and fills in
	// Change.Via.
	Cwd string
	// Reason is why, in the model's own words. The first line quotes it as the model's.
	Reason string
	// GrantRoot is the folder in which an approval for the session also allows later
	// changes. Empty means none.
	GrantRoot string
	// Notes are further lines, in the asking program's own words.
	Notes []string
}

// A Change is what would happen to one file.
type Change struct {
	Kind    ChangeKind // what happens to the file
	Path    string     // the file, relative to the question's Cwd or absolute
	MoveTo  string     // its new path, if an update moves it
	Via     string     // the path in the patch, if symbolic links lead from it to Path
	MoveVia string     // the same for MoveTo
	Added   int        // lines added; shown when it or Removed is set
	Removed int        // lines removed
}

// A ChangeKind is what a change does to a file. The message shows it.
type ChangeKind string

// The kinds of a change.
const (
	ChangeAdd    ChangeKind = "add"
	ChangeDelete ChangeKind = "delete"
	ChangeUpdate ChangeKind = "update" // perhaps with a move
)

// maxChanges is how many changes a message lists.
const maxChanges = 40

// Question builds the question. It sets Once if there are more changes than a message
// lists.
func (p *PatchQuestion) Question() *Question {
	var lines []string
	if p.Reason != "" {
		lines = append(lines, reasonLine(p.Reason))
	}
	lines = append(lines, "Allow "+subject(p.Subject)+" to apply proposed code changes?")
	changes, left := p.Changes, len(p.Changes)-maxChanges
	if left > 0 {
		// Unusual changes come first, so that they are listed.
		var unusual, others []Change
		for _, c := range changes {
			if p.unusual(c) {
				unusual = append(unusual, c)
			} else {
				others = append(others, c)
			}
		}
		changes = slices.Concat(unusual, others)[:maxChanges]
	}
	for _, change := range changes {
		lines = append(lines, p.changeLine(change))
	}
	if left > 0 {
		more := fmt.Sprintf("- and %s more (%s in all)", thousands(left), thousands(len(p.Changes)))
		if p.unusual(changes[maxChanges-1]) {
			more += ", which may be outside the workspace too"
		}
		lines = append(lines, more)
	}
	if p.GrantRoot != "" {
		lines = append(lines, "An approval for the session allows later changes under "+p.place(p.GrantRoot)+" too.")
	}
	for _, note := range p.Notes {
		lines = append(lines, showLine(note))
	}
	return &Question{
		Message: strings.Join(lines, "\n"),
		Once:    len(p.Changes) > maxChanges,
		NotDone: notApplied,
	}
}

// unusual reports whether a change goes through links or leaves the workspace.
func (p *PatchQuestion) unusual(c Change) bool {
	leaves := func(path string) bool { return path != "" && p.Cwd != "" && outside(p.Cwd, filepath.Clean(path)) }
	return c.Via != "" || c.MoveVia != "" || leaves(c.Path) || leaves(c.MoveTo)
}

func (p *PatchQuestion) changeLine(c Change) string {
	line := "- " + showLine(clip(string(c.Kind), 20, 0)) + " " + p.resolved(c.Via, c.Path)
	if c.MoveTo != "" {
		line += " and move it to " + p.resolved(c.MoveVia, c.MoveTo)
	}
	if c.Added != 0 || c.Removed != 0 {
		line += fmt.Sprintf(" (+%d -%d)", c.Added, c.Removed)
	}
	return line
}

// resolved returns a path, preceded by the path whose links lead to it if there is one.
func (p *PatchQuestion) resolved(via, path string) string {
	if via == "" {
		return p.place(path)
	}
	return codePath(via) + " → " + p.place(path)
}

// codePath returns the cleaned path in a code span.
func codePath(path string) string {
	shown, hidden := showPath(filepath.Clean(path))
	shown = codeSpan(clip(shown, pathHead, pathTail))
	if hidden {
		shown += " " + hiddenMarker
	}
	return shown
}

// place returns a path, marked if it leaves the workspace.
func (p *PatchQuestion) place(path string) string {
	shown := codePath(path)
	if p.Cwd != "" && outside(p.Cwd, filepath.Clean(path)) {
		shown += " (outside the workspace)"
	}
	return shown
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
