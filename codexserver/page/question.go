package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	utf8text "github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// questionView is what the page shows of a question. Hidden characters of Command and
// Script are visible from the start, those of the other texts after show.
type questionView struct {
	// Kind is "exec", "patch" or "other".
	Kind string `json:"kind"`
	// Subject is who asks.
	Subject string `json:"subject"`
	// Command is the command on one line, with hidden characters made visible.
	Command string `json:"command,omitzero"`
	// Script is the words of Command that have several lines, with their line breaks.
	Script string `json:"script,omitzero"`
	// Hidden is true when the command has invisible characters.
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
	// Session is true when an approval for the session is possible.
	Session bool `json:"session,omitzero"`
	// Inside is true when such an approval lets the command run again only inside the sandbox.
	Inside bool `json:"inside,omitzero"`
	// Always is the lasting rule that a person may accept, nil if there is none.
	Always *alwaysView `json:"always,omitzero"`
	// Deadline is when a question without an answer is denied, a Unix time in ms.
	Deadline int64 `json:"deadline,omitzero"`
	// Brief is true when the question is decided and parts of it were removed.
	Brief bool `json:"brief,omitzero"`

	end
}

// alwaysView is what the page shows of a lasting rule.
type alwaysView struct {
	// Words say what is always allowed then.
	Words string `json:"words"`
}

func viewQuestion(r *approval.Request) *questionView {
	v := &questionView{Subject: cmp.Or(r.Thread.Engine, "Codex"), Session: !r.Question.Once, Inside: !r.Question.Once && r.Question.Inside, Reach: r.Question.Reach}
	if a := r.Question.Always; a != nil {
		v.Always = &alwaysView{a.Words}
	}
	switch m := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		v.Kind, v.Cwd, v.Reason = "exec", m.Cwd, m.Reason
		v.Command = elicit.ShowCommand(m.Command)
		v.Script, v.Hidden = script(m.Command)
		if m.Subject != "" {
			v.Subject = m.Subject
		}
		if m.FromEngine {
			v.Reason = ""
			v.Notes = note(v.Notes, m.Reason)
		}
		if m.Program != "" {
			v.Notes = append(v.Notes, "The program is "+elicit.ShowText(m.Program)+".")
		}
		v.Covers = "Approve once covers this one run."
		switch {
		case !v.Session:
		case v.Inside:
			v.Covers += " For this session, the same words run again in this folder, only inside the sandbox."
		case m.NoSandbox:
			v.Covers += " For this session, the same words run again in this folder."
		}
	case protocol.PatchApprovalRequest:
		v.Kind, v.Cwd, v.Reason = "patch", m.Cwd, m.Reason
		v.Covers = "Approve once covers these changes, and no later ones."
		v.Files = viewFiles(m.Changes, m.Cwd)
		for _, to := range slices.Sorted(maps.Keys(m.Links)) {
			v.Notes = append(v.Notes, fmt.Sprintf("The patch names %s, from which symbolic links lead to %s.", path(m.Links[to]), path(to)))
		}
		v.Notes = append(v.Notes, m.Notes...)
		if m.Subject != "" {
			v.Subject = m.Subject
		}
	default:
		v.Kind, v.Message, v.Facts = "other", r.Question.Message, facts(r.Question.Meta)
	}
	return v
}

// facts returns what a question has besides its message, without what the page shows anyway.
func facts(meta map[string]any) string {
	meta = maps.Clone(meta)
	delete(meta, thread.MetaFacts)
	if len(meta) == 0 {
		return ""
	}
	text, err := json.Marshal(meta, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), jsontext.WithIndent("  "))
	if err != nil {
		return "There are facts that cannot be shown: " + err.Error()
	}
	return string(text)
}

func note(notes []string, s string) []string {
	if s == "" {
		return notes
	}
	return append(notes, s)
}

// script returns the words of a command that have more than one line, and whether any
// word has invisible characters.
func script(argv []string) (text string, hidden bool) {
	var words []string
	for _, word := range argv {
		shown := elicit.ShowText(word)
		hidden = hidden || shown != word
		if strings.Contains(strings.TrimRight(word, "\n"), "\n") {
			words = append(words, shown)
		}
	}
	return strings.Join(words, "\n"), hidden
}

// size returns about how many bytes a question takes.
func (v *questionView) size() int {
	n := len(v.Command) + len(v.Rule) + len(v.Script) + len(v.Cwd) + len(v.Message) + len(v.Facts) + len(v.Reason) + len(v.Reach) + len(v.Covers) + len(v.Feedback) + sizeOf(v.Files)
	if v.Always != nil {
		n += len(v.Always.Words)
	}
	for _, s := range v.Notes {
		n += len(s)
	}
	return n
}

// maxBrief is how many bytes of each part of a decided question are kept.
const maxBrief = 4 << 10

// brief returns what is kept of a decided question.
func (v *questionView) brief() *questionView {
	if v.size() <= maxBrief {
		return v
	}
	short := *v
	short.Brief = true
	short.Script, short.Facts, short.Reach, short.Covers, short.Always, short.Notes = "", "", "", "", nil, nil
	short.Command, short.Message = utf8text.Brief(v.Command, maxBrief), utf8text.Brief(v.Message, maxBrief)
	short.Cwd, short.Reason = utf8text.Brief(v.Cwd, maxBrief), utf8text.Brief(v.Reason, maxBrief)
	short.Files = clipFiles(v.Files, maxBrief)
	return &short
}

// show returns a copy with hidden characters made visible.
func (v *questionView) show() *questionView {
	shown := *v
	shown.Subject, shown.Cwd = line(v.Subject), path(v.Cwd)
	shown.Message, shown.Facts, shown.Reason = elicit.ShowText(v.Message), elicit.ShowText(v.Facts), elicit.ShowText(v.Reason)
	shown.Reach, shown.Covers = elicit.ShowText(v.Reach), elicit.ShowText(v.Covers)
	shown.Rule = line(v.Rule)
	if v.Always != nil {
		shown.Always = &alwaysView{line(v.Always.Words)}
	}
	shown.Files = showFiles(v.Files)
	shown.Notes = slices.Clone(v.Notes)
	for i, s := range shown.Notes {
		shown.Notes[i] = elicit.ShowText(s)
	}
	return &shown
}
