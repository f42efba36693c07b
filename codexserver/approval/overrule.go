package approval

import (
	"cmp"
	"maps"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// An Overrule is a [Subject]: whether a person overrules a denial of the engine's reviewer, a model. The denial has
// been reported.
type Overrule struct{ protocol.Refused }

// Facts implements [Action]. A denial is recorded without the content of changes, and so is what overrules it.
func (o Overrule) Facts(bool) Facts { return ActionOf(&o.Refused).Facts(false) }

// Refusal implements [Action].
func (o Overrule) Refusal() protocol.Refusal { return ActionOf(&o.Refused).Refusal() }

// Call implements [Subject].
func (o Overrule) Call() string { return o.CallID }

// Effect implements [Subject].
func (o Overrule) Effect() Effect { return Overrules }

// Approver implements [Subject].
func (o Overrule) Approver() Approver { return PersonAlone }

// Each implements [Subject].
func (o Overrule) Each(*Rules) bool { return true }

// Rule implements [Subject].
func (o Overrule) Rule(*Rules, bool) (out elicit.Outcome, decides bool) { return out, false }

// Lasting implements [Subject].
func (o Overrule) Lasting() Lasting { return Lasting{} }

// Unasked implements [Subject].
func (o Overrule) Unasked() string { return "" }

// Complete implements [Subject].
func (o Overrule) Complete(bool) Subject { return o }

// Name implements [Subject].
func (o Overrule) Name() string { return "what was denied" }

// Whole implements [Subject].
func (o Overrule) Whole() []string { return append(slices.Sorted(maps.Keys(o.Changes)), o.Command...) } // one of them

// Meta implements [Subject].
func (o Overrule) Meta() map[string]any { return nil }

// Codex implements [Subject].
func (o Overrule) Codex() *Codex { return nil }

// Event implements [Subject].
func (o Overrule) Event() protocol.EventMsg { return nil }

// Show implements [Subject].
func (o Overrule) Show(v View) { v.Message() }

// Question implements [Subject]. An approval runs nothing. If the message does not show all that was denied, Meta has
// it.
func (o Overrule) Question(engine, _ string) *elicit.Question {
	engine = plain.OneLine(cmp.Or(engine, "Codex"), 0)
	q := &elicit.Question{Once: true, NotDone: "the denial stands"}
	kind, what, meta := "the tool ", o.Tool, map[string]any{"tool": o.Tool, "cwd": o.Cwd}
	switch {
	case len(o.Command) > 0:
		kind, what, meta["command"] = "", elicit.ShowCommand(o.Command), o.Command
	case len(o.Changes) > 0:
		files := slices.Sorted(maps.Keys(o.Changes))
		kind, what, meta["files"] = "changes to ", elicit.ShowCommand(files), files
	}
	shown, whole := elicit.ShowCode(what)
	if q.Partial = !whole; q.Partial {
		q.Meta = meta
	}
	where := ""
	if o.Cwd != "" {
		folder, all := elicit.ShowCode(o.Cwd)
		where, q.Partial = " in "+folder, q.Partial || !all
	}
	lost := ""
	for _, line := range (Patch{Changes: o.Changes, Cwd: o.Cwd}).form(engine, "").losses() {
		lost += line + "\n"
	}
	q.Message = "Allow what " + engine + "'s reviewer denied: " + kind + shown + where + "?\n" + lost +
		"It was " + plain.OneLine(o.Reason, 0) + ".\n" +
		"Your approval runs nothing: " + engine + "'s model and its reviewer are told that you allow exactly this, " +
		"and the reviewer decides once more.\n" +
		"Only a person may approve this."
	q.Brief = Brief("Runs nothing now, overrules "+engine+"'s reviewer, which denied:", kind+what+where,
		"It and the model are told that you allow exactly this; it decides again.")
	return q
}
