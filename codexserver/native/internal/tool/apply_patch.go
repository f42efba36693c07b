package tool

import (
	"context"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/plain"
)

var patchDefinition = model.Tool{
	Name: "apply_patch",
	Description: `Adds, changes, moves and deletes files. The input is one text of this form:

*** Begin Patch
*** Add File: PATH
+every line of the new file after a plus
*** Delete File: PATH
*** Update File: PATH
*** Move to: NEW PATH
@@ a line that comes before, such as the name of a function
 a line that stays, after a blank
-a line to remove, after a minus
+a line to add, after a plus
*** End Patch

It holds any number of file sections. "Move to" and the text behind @@ are optional. An update has one @@ part for ` +
		`each place that it changes, in the order of the file; in each one about three lines that stay go before ` +
		`and after the change, so that the place is found: there are no line numbers. "*** End of File" after a ` +
		`part says that it ends the file. Paths are relative to the working folder. If one part does not fit, ` +
		`nothing is changed.`,
	Parameters: []byte(`{"type":"object","properties":{
"input":{"type":"string","description":"The whole text from *** Begin Patch to *** End Patch"}
},"required":["input"],"additionalProperties":false}`),
}

// applyPatch is the patch tool. The model calls it as a function or with free text.
func (t *Turn) applyPatch(ctx context.Context, call Call) (Result, error) {
	text := call.Arguments
	if _, err := patch.Parse(text); err != nil && !call.Custom { // it reads one within JSON
		var args struct {
			Input string `json:"input"`
		}
		if err := decodeArguments(call.Arguments, &args); err != nil {
			return Result{Output: err.Error()}, nil
		}
		if text = args.Input; text == "" {
			return Result{Output: (&argumentError{"input", "missing"}).Error()}, nil
		}
	}
	return t.patch(ctx, call.ID, text, t.Cwd)
}

// patch applies a patch, if the policy and the user allow it. Its paths are relative to
// dir.
func (t *Turn) patch(ctx context.Context, id, text, dir string) (Result, error) {
	work, refusal := t.work("apply_patch", "patch rejected: ")
	if refusal != "" {
		return Result{Output: refusal}, nil
	}
	parsed, err := patch.Parse(text)
	if err != nil {
		return Result{Output: err.Error()}, nil
	}
	if parsed.IsEmpty() {
		return Result{Output: "patch rejected: it changes no file"}, nil
	}
	plan, err := parsed.Plan(work, dir)
	if err != nil {
		return Result{Output: fmt.Sprintf("the patch does not fit: %v", err)}, nil
	}
	output, err := (&application{turn: t, id: id, text: text, dir: dir, plan: plan}).decide(ctx)
	return Result{Output: output}, err
}

// work returns the working folder for a change of files, or why there may be none.
func (t *Turn) work(tool, rejected string) (work patch.Folder, refusal string) {
	if t.box.options.ReadOnly {
		return work, t.refuse(protocol.Refused{Tool: tool, Reason: rejected +
			"this conversation must not change files"})
	}
	work, err := t.box.folder(t.Cwd)
	if err != nil {
		refusal = rejected + err.Error()
	}
	return work, refusal
}

// application is the application of one patch.
type application struct {
	turn      *Turn
	id        string
	text, dir string
	plan      *patch.Plan
	// plain returns outputs as plain text, and applied is called after the patch was applied.
	// Only the tools that edit and write set them.
	plain   bool
	applied func()

	changes map[string]protocol.FileChange
	// linked are the files with other names, which a write changes too, and notes says so.
	linked, notes []string
}

// folder returns a working folder and where it led when it was first used. It fails if the
// folder leads elsewhere now.
func (b *Toolbox) folder(dir string) (patch.Folder, error) {
	work := patch.Folder{Path: dir}
	if set := b.options.Sandbox.Permitted(dir, b.options.Environ); set != nil {
		work.Check = set.Check
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return work, err
	}
	if work.Real = b.folders[dir]; work.Real == "" {
		work.Real = real
		b.folders[dir] = real
	}
	if work.Real != real {
		return work, fmt.Errorf("the working folder %s was replaced: it led to %s and now leads to %s", dir, work.Real,
			real)
	}
	return work, nil
}

func (a *application) decide(ctx context.Context) (output string, err error) {
	t := a.turn
	a.changes, a.linked = a.plan.Changes(), a.plan.HardLinks()
	a.notes = linkedNotes(a.linked)
	roots, err := t.roots()
	touched := a.plan.Touched(t.box.options.Sandbox.Protected(roots.Paths))
	verdict := decide.Patch(decide.PatchInput{
		Policy:  t.ApprovalPolicy,
		Sandbox: t.SandboxPolicy.Mode,
		// A write that changes other names of a file may change them anywhere.
		Inside: err == nil && len(touched) == 0 && len(a.linked) == 0 && len(a.plan.Protected(roots.Paths)) == 0 &&
			a.plan.Within(roots.Paths) && a.plan.All(t.writable),
	})
	switch verdict.Action {
	case decide.Run:
		return a.apply(true, a.confined)
	case decide.RunSandboxed:
		return a.stopped(ctx)
	case decide.Ask:
		why := a.plan.Why()
		note := func(path, more string) { // each such file alone would be asked about, unless its name says so
			if why[path] != "" {
				more += "; " + why[path]
			}
			why[path] = more
		}
		for _, path := range touched {
			note(path, "no command may write it")
		}
		for _, path := range a.linked {
			note(path, "it has other names")
		}
		out := t.Host.Ask(ctx, approval.Patch{CallID: a.id, Changes: a.changes, Links: a.plan.Links(), Cwd: t.Cwd,
			Once: true, Notes: a.notes, Why: why})
		if refusal, err := readOutcome("the patch was not applied", out); err != nil || refusal != "" {
			return refusal, err
		}
		return a.apply(false, a.plan.Apply)
	}
	return t.refuse(protocol.Refused{Changes: a.changes,
		Reason: strings.Join(append([]string{verdict.Reason}, a.notes...), ". ")}), nil
}

// writable reports whether the user's profile lets commands write a path.
func (t *Turn) writable(path string) bool { return t.permitted().Of(path) == permission.Write }

// linkedNotes returns a sentence about files that a write changes under other names too, if there are any.
func linkedNotes(links []string) []string {
	const most = 8
	if len(links) == 0 {
		return nil
	}
	var shown []string
	for _, path := range links[:min(len(links), most)] {
		shown = append(shown, elicit.ShowCommand([]string{path}))
	}
	if more := len(links) - most; more > 0 {
		shown = append(shown, fmt.Sprintf("%d more", more))
	}
	return []string{"A write to " + strings.Join(shown, ", ") +
		" changes every other name (hard link) of the file too."}
}

// losses returns a sentence about the files that a patch deletes or replaces, for a question that shows its text alone.
func losses(changes map[string]protocol.FileChange) []string {
	const most = 8
	var lost []string
	for path, c := range changes {
		_, removed := c.Lines()
		name := elicit.ShowCommand([]string{path})
		switch {
		case c.Delete != nil:
			lost = append(lost, "deletes "+name+" ("+plain.Counted(removed, "line")+")")
		case c.Replaces():
			lost = append(lost, "replaces "+name+" ("+plain.Counted(removed, "line")+" lost)")
		}
	}
	if len(lost) == 0 {
		return nil
	}
	slices.Sort(lost)
	if more := len(lost) - most; more > 0 {
		lost = append(lost[:most], fmt.Sprintf("deletes or replaces %d more", more))
	}
	return []string{"It " + strings.Join(lost, ", ") + "."}
}

// errOutside is why the sandbox stops a patch that the policy does not let run.
var errOutside = errors.New("it writes where the sandbox does not allow it")

// confined applies the patch in the sandbox, or without one if this system has none: the policy lets it run.
func (a *application) confined() error {
	if a.turn.SandboxPolicy.Mode == protocol.SandboxDangerFullAccess {
		return a.plan.Apply()
	}
	c, err := a.turn.confineTo(a.turn.SandboxPolicy, true)
	if err == nil {
		err = c.Do(a.plan.Apply)
	}
	if errors.Is(err, box.ErrUnavailable) {
		return a.plan.Apply()
	}
	return err
}

// apply applies the patch, emits its events, and returns the output for the model. An error ends the turn.
func (a *application) apply(auto bool, apply func() error) (output string, err error) {
	t := a.turn
	if err := t.Acting(); err != nil {
		return "", err
	}
	t.Host.Emit(protocol.PatchApplyBegin{CallID: a.id, AutoApproved: auto, Changes: a.changes})
	if err := apply(); err != nil {
		text := fmt.Sprintf("nothing was changed: %v\n", err)
		t.Host.Emit(protocol.PatchApplyEnd{CallID: a.id, Stderr: text})
		return a.output(text, 1), nil
	}
	summary := a.plan.Summary()
	t.Host.Emit(protocol.PatchApplyEnd{CallID: a.id, Stdout: summary, Success: true})
	t.diff.Add(a.plan)
	if diff := t.UnifiedDiff(); diff != "" {
		t.Host.Emit(protocol.TurnDiff{UnifiedDiff: diff})
	}
	if a.applied != nil {
		a.applied()
	}
	return a.output(summary, 0), nil
}

// output returns what the model is told.
func (a *application) output(text string, exit int) string {
	if a.plain {
		return strings.TrimSuffix(text, "\n")
	}
	return modelOutput(run.Result{Aggregated: text, ExitCode: exit})
}

// stopped reports a patch that the sandbox stops, and asks the user to apply it without one. Nothing is
// tried, because the sandbox does not protect all files that a patch may not write.
func (a *application) stopped(ctx context.Context) (output string, err error) {
	if output, err = a.apply(true, func() error { return errOutside }); err != nil {
		return output, err
	}
	t, after := a.turn, decide.AfterDenial(a.turn.ApprovalPolicy)
	t.Host.Emit(protocol.BackgroundEvent{Message: fmt.Sprintf("the sandbox stopped the patch: %v", errOutside)})
	request := approval.Command{
		CallID: a.id, Command: []string{"apply_patch", a.text}, Cwd: a.dir, Reason: after.Reason, LeavesSandbox: true,
		Once: true,
	}
	remarks := append(losses(a.changes), a.notes...)
	if led := describeLinks(a.plan.Links(), t.Cwd); led != "" {
		remarks = append(remarks, led)
	}
	if len(remarks) > 0 {
		request.Reason, request.FromEngine = request.Reason+" "+strings.Join(remarks, " "), true
	}
	refusal, err := readOutcome("the command was not run", t.Host.Ask(ctx, request))
	if err != nil || refusal != "" {
		return refusal, err
	}
	t.Host.Emit(protocol.BackgroundEvent{Message: "applying the patch without sandbox"})
	return a.apply(false, a.plan.Apply)
}

// describeLinks returns a sentence about the targets of symbolic links that a patch writes
// through, or "".
func describeLinks(links map[string]string, cwd string) string {
	var led []string
	for _, to := range slices.Sorted(maps.Keys(links)) {
		line := elicit.ShowCommand([]string{links[to]}) + " → " + elicit.ShowCommand([]string{to})
		if !paths.Below(to, cwd) {
			line += " (outside the workspace)"
		}
		led = append(led, line)
	}
	if led == nil {
		return ""
	}
	return "Symbolic links lead elsewhere: " + strings.Join(led, ", ")
}
