package approval

import (
	"cmp"
	"maps"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// OverruleQuestion returns the question whether a person overrules a denial of the engine's reviewer, a model. An approval runs
// nothing. Engine is the name of the engine, by default "Codex". If the message does not show all that was denied, Meta has it.
func OverruleQuestion(r protocol.OverruleRequest, engine string) *elicit.Question {
	engine = plain.OneLine(cmp.Or(engine, "Codex"), 0)
	q := &elicit.Question{Once: true, NotDone: "the denial stands"}
	kind, what, meta := "the tool ", r.Tool, map[string]any{"tool": r.Tool, "cwd": r.Cwd}
	switch {
	case len(r.Command) > 0:
		kind, what, meta["command"] = "", elicit.ShowCommand(r.Command), r.Command
	case len(r.Changes) > 0:
		files := slices.Sorted(maps.Keys(r.Changes))
		kind, what, meta["files"] = "changes to ", elicit.ShowCommand(files), files
	}
	shown, whole := elicit.ShowCode(what)
	if q.Partial = !whole; q.Partial {
		q.Meta = meta
	}
	where := ""
	if r.Cwd != "" {
		folder, all := elicit.ShowCode(r.Cwd)
		where, q.Partial = " in "+folder, q.Partial || !all
	}
	lost := ""
	for _, line := range patchOf(protocol.PatchApprovalRequest{Changes: r.Changes, Cwd: r.Cwd}, engine, "").losses() {
		lost += line + "\n"
	}
	q.Message = "Allow what " + engine + "'s reviewer denied: " + kind + shown + where + "?\n" + lost +
		"It was " + plain.OneLine(r.Reason, 0) + ".\n" +
		"Your approval runs nothing: " + engine + "'s model and its reviewer are told that you allow exactly this, and the reviewer decides once more.\n" +
		"Only a person may approve this."
	q.Brief = Brief("Runs nothing now, overrules "+engine+"'s reviewer, which denied:", kind+what+where, "It and the model are told that you allow exactly this; it decides again.")
	return q
}
