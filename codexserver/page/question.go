package page

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// questionView is what the page shows of a question, with hidden characters made visible. Nothing is cut.
// That of a question that is not open has only the end.
type questionView struct {
	// Kind is "exec", "patch" or "other".
	Kind string `json:"kind,omitzero"`
	// Subject is who asks.
	Subject string `json:"subject,omitzero"`
	// Command is the command on one line, as a person would write it, but for its Script.
	Command string `json:"command,omitzero"`
	// Script is the last word of the command if a shell runs it and it has several lines.
	Script string `json:"script,omitzero"`
	// Hidden is true when the command, the folder or a path has invisible characters.
	Hidden bool `json:"hidden,omitzero"`
	// Cwd is the working folder.
	Cwd string `json:"cwd,omitzero"`
	// Files are a patch's.
	Files []file `json:"files,omitzero"`
	// Message is the text of a question of the kind "other".
	Message string `json:"message,omitzero"`
	// Facts is further data of such a question as JSON, such as a tool's arguments.
	Facts string `json:"facts,omitzero"`
	// Reach says what the action may touch if it is approved: something that no sandbox
	// confines. It is "" if that is not known.
	Reach string `json:"reach,omitzero"`
	// Covers says what an approval covers.
	Covers string `json:"covers,omitzero"`
	// Reason is the model's reason.
	Reason string `json:"reason,omitzero"`
	// Notes are sentences of the engine.
	Notes []string `json:"notes,omitzero"`
	// Tip says how less would be asked. It is no reason against an approval, and stands below the answers.
	Tip string `json:"tip,omitzero"`
	// Session is true when an approval for the session is possible.
	Session bool `json:"session,omitzero"`
	// Inside is true when such an approval lets the command run again only inside the sandbox.
	Inside bool `json:"inside,omitzero"`
	// Always says what the lasting rule allows that a person may accept, "" if there is none.
	Always string `json:"always,omitzero"`
	// Deadline is when a question without an answer is denied, a Unix time in ms.
	Deadline int64 `json:"deadline,omitzero"`

	end
}

// file is what a patch does to one file.
type file struct {
	// Kind is "add", "delete" or "update".
	Kind string `json:"kind"`
	// Path is relative to the folder if it lies in it.
	Path string `json:"path"`
	// MoveTo is the new path if an update moves the file.
	MoveTo string `json:"moveTo,omitzero"`
	// Replaces is true if another file is at MoveTo, or at Path.
	Replaces bool `json:"replaces,omitzero"`
	// Outside is true when Path or MoveTo lies outside the folder.
	Outside bool `json:"outside,omitzero"`
	// Why is why the file deserves attention, or "".
	Why string `json:"why,omitzero"`
	// Added and Removed count lines.
	Added   int `json:"added"`
	Removed int `json:"removed"`
	// Diff has the lines of the file, each after "+", "-" or " ".
	Diff string `json:"diff,omitzero"`
}

func viewQuestion(r *approval.Request) *questionView {
	q := r.Question
	v := &questionView{Session: !q.Once, Inside: !q.Once && q.Inside, Reach: elicit.ShowText(q.Reach)}
	if q.Always != nil {
		v.Always = plain.OneLine(q.Always.Words, 0)
	}
	r.Subject.Show(&shown{v, q})
	v.Subject = plain.OneLine(cmp.Or(v.Subject, r.Thread.Engine, "Codex"), 0)
	return v
}

// shown is a view of a question, as its subject shows it.
type shown struct {
	view     *questionView
	question *elicit.Question
}

// Command implements [approval.View].
func (s *shown) Command(c approval.Command) {
	s.view.exec(c)
	s.view.Subject = c.Asker
}

// Patch implements [approval.View].
func (s *shown) Patch(p approval.Patch) {
	v := s.view
	v.Kind, v.Cwd, v.Reason, v.Subject = "patch", path(p.Cwd), elicit.ShowText(p.Reason), p.Asker
	v.Covers = "Approve once covers these changes, and no later ones."
	v.files(p)
	for _, to := range slices.Sorted(maps.Keys(p.Links)) {
		v.hides(p.Links[to], to)
		v.note(fmt.Sprintf("The patch names %s, from which symbolic links lead to %s.", path(p.Links[to]), path(to)))
	}
	v.note(p.Notes...)
}

// Message implements [approval.View].
func (s *shown) Message() {
	s.view.Kind, s.view.Message, s.view.Facts = "other", elicit.ShowText(s.question.Message), facts(s.question.Meta)
}

func (v *questionView) exec(m approval.Command) {
	v.Kind, v.Cwd = "exec", path(m.Cwd)
	v.Command = elicit.ShowCommand(decide.Written(m.Command))
	v.hides(append(m.Command[:len(m.Command):len(m.Command)], m.Cwd)...)
	s := m.Command
	if len(s) == 3 && (s[1] == "-c" || s[1] == "-lc") && strings.Contains(strings.TrimRight(s[2], "\n"), "\n") {
		v.Command, v.Script = elicit.ShowCommand(s[:2]), elicit.ShowText(s[2])
	}
	if m.FromEngine {
		v.note(m.Reason)
	} else {
		v.Reason = elicit.ShowText(m.Reason)
	}
	v.note(m.Notes...)
	v.Tip = elicit.ShowText(m.Tip)
	v.Covers = "Approve once covers this one run."
	if v.Inside {
		v.Covers += " For this session, the same words run again in this folder, only inside the sandbox."
	} else if v.Session && m.NoSandbox {
		v.Covers += " For this session, the same words run again in this folder."
	}
}

// hides looks for invisible characters.
func (v *questionView) hides(texts ...string) {
	for _, text := range texts {
		v.Hidden = v.Hidden || elicit.ShowText(text) != text
	}
}

func (v *questionView) note(texts ...string) {
	for _, text := range texts {
		if text != "" {
			v.Notes = append(v.Notes, elicit.ShowText(text))
		}
	}
}

// facts returns what a question has besides its message, without what the page shows anyway.
func facts(meta map[string]any) string {
	meta = maps.Clone(meta)
	delete(meta, thread.MetaFacts)
	if len(meta) == 0 {
		return ""
	}
	text, err := json.Marshal(meta,
		json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.WithIndent("  "))
	if err != nil {
		return "There are facts that cannot be shown: " + err.Error()
	}
	return elicit.ShowText(string(text))
}

// size returns how many bytes a question takes as a browser gets it.
func (v *questionView) size() int {
	text, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return maxQuestion + 1
	}
	return len(text)
}

// files shows the files of a patch, sorted by path.
func (v *questionView) files(m approval.Patch) {
	v.hides(m.Cwd)
	for _, name := range slices.Sorted(maps.Keys(m.Changes)) {
		c := m.Changes[name]
		to := c.MovedTo()
		f := file{
			Kind: c.Kind(), Replaces: c.Replaces(), Diff: elicit.ShowText(c.Diff()),
			Why: plain.OneLine(cmp.Or(m.Why[name], m.Why[to]), 0),
		}
		f.Path, f.Outside = place(name, m.Cwd)
		f.Added, f.Removed = c.Lines()
		if to != "" {
			var outside bool
			f.MoveTo, outside = place(to, m.Cwd)
			f.Outside = f.Outside || outside
		}
		v.Files = append(v.Files, f)
		v.hides(name, to)
	}
}

// place returns a path relative to the folder as it is shown, and whether it lies outside of it. If there is
// no folder, nothing counts as outside. It judges names and does not follow symbolic links.
func place(name, cwd string) (shown string, outside bool) {
	name = filepath.Clean(name)
	if cwd == "" {
		return path(name), false
	}
	if !filepath.IsAbs(name) {
		return path(name), !filepath.IsLocal(name)
	}
	if rel, ok := paths.Within(name, cwd); ok {
		return path(rel), false
	}
	return path(name), true
}

// path returns a path on one line, quoted where it has to be.
func path(s string) string {
	if s == "" {
		return ""
	}
	return elicit.ShowCommand([]string{s})
}
