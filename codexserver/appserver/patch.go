package appserver

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// notApplied is all that is known of a patch that failed. Codex applies one file after another, and tells its model alone why it
// stopped.
const notApplied = "Codex could not apply all of it, and does not say why; some of its files may be changed"

// announce looks at what a patch will destroy, which Codex does not say. A patch that has begun may be written already.
func (r *turn) announce(it *apptypes.Item, begun bool) *patch.Announced {
	return patch.Announce(patch.Folder{Path: r.settings.now.Cwd}, fileChanges(it.Changes), begun)
}

// changes returns the changes of a patch, with what they destroy if that is known.
func (o *openItem) changes() map[string]protocol.FileChange {
	if o.patch != nil {
		return o.patch.Changes
	}
	return fileChanges(o.item.Changes)
}

// shows records what a question shows of a patch, for the event that begins it.
func (r *turn) shows(key itemKey, shown *patch.Announced) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.open[key]; o != nil {
		o.patch = shown
	}
}

// still returns the outcome of a question about a patch, whose approval is void if it is not about what is there now.
func (r *turn) still(shown *patch.Announced, out elicit.Outcome) elicit.Outcome {
	if !out.Decision.Approves() {
		return out
	}
	err := shown.Check()
	if err == nil {
		return out
	}
	why := "the approval does not count: " + err.Error()
	refused := &protocol.Refused{Changes: shown.Changes, Cwd: r.settings.now.Cwd, Reason: why}
	r.report(protocol.BackgroundEvent{Message: words(refused) + ": " + why, Refused: refused})
	return elicit.Outcome{Decision: elicit.Denied, Feedback: why}
}

func fileChanges(updates []apptypes.FileUpdate) map[string]protocol.FileChange {
	changes := make(map[string]protocol.FileChange, len(updates))
	for _, u := range updates {
		var c protocol.FileChange
		switch u.Kind.Type {
		case apptypes.PatchChangeKindAdd:
			c.Add = &protocol.FileContent{Content: u.Diff}
		case apptypes.PatchChangeKindDelete:
			c.Delete = &protocol.FileContent{Content: u.Diff}
		default:
			c.Update = &protocol.FileUpdate{UnifiedDiff: u.Diff, MovePath: u.Kind.MovePath}
			if to := u.Kind.MovePath; to != nil { // Codex says that below the diff
				c.Update.UnifiedDiff = strings.TrimSuffix(u.Diff, "\n\nMoved to: "+*to)
			}
		}
		changes[u.Path] = c
	}
	return changes
}

// patchSummary lists the files that a patch changed, one a line.
func (o *openItem) patchSummary() string {
	var text strings.Builder
	text.WriteString("Success. Updated the following files:\n")
	for _, u := range o.item.Changes {
		letter, path := "M", u.Path
		switch {
		case u.Kind.Type == apptypes.PatchChangeKindAdd && (o.patch == nil || !o.patch.Replaces(u.Path)):
			letter = "A"
		case u.Kind.Type == apptypes.PatchChangeKindDelete:
			letter = "D"
		case u.Kind.MovePath != nil:
			path = *u.Kind.MovePath
		}
		text.WriteString(letter + " " + path + "\n")
	}
	return text.String()
}
