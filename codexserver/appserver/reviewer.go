package appserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/go-json-experiment/json"
)

// verdicts are the ends of a review in words.
var verdicts = map[string]string{
	apptypes.GuardianApprovalReviewStatusApproved: "allowed by Codex's reviewer, a model",
	apptypes.GuardianApprovalReviewStatusDenied:   "denied by Codex's reviewer, a model",
	apptypes.GuardianApprovalReviewStatusTimedOut: "not decided in time by Codex's reviewer, a model",
	apptypes.GuardianApprovalReviewStatusAborted: "not decided by Codex's reviewer, a model, because its review was " +
		"stopped",
}

// strictly is what follows from autoApprovalReview/strictReviewRequired.
const strictly = "Codex requires a strict review: from now on its reviewer, a model, decides about more of this turn"

// maxRationale bounds what the reviewer says, in characters.
const maxRationale = 500

// review handles the start and the end of a review: with approvals_reviewer = "auto_review" a model decides in the place
// of a person. Codex marks the form as unstable, so what is not understood is no error, and no approval.
func (r *turn) review(method string, n *apptypes.Note) {
	v, act, target := lenient[apptypes.Review](n.Review), lenient[apptypes.ReviewAction](n.Action),
		lenient[string](n.TargetItemID)
	id, key := itemKey{n.ThreadID, string(n.ReviewID)}, itemKey{n.ThreadID, target}
	o := r.open[key]
	switch act.Type {
	case apptypes.GuardianApprovalReviewActionWriteStdin, apptypes.GuardianApprovalReviewActionExecve,
		apptypes.GuardianApprovalReviewActionNetworkAccess, apptypes.GuardianApprovalReviewActionRequestPermissions:
		o, key = nil, itemKey{} // not about the start of the item
	}
	if method == apptypes.NoteItemAutoApprovalReviewStarted {
		r.reviews[id] = key
		return
	}
	_, began := r.reviews[id]
	delete(r.reviews, id)
	about, known := reviewed(key.id, o, &act)
	m := protocol.BackgroundEvent{Message: words(about) + ": "}
	switch about.Reason = verdicts[v.Status]; {
	case about.Reason == "":
		about.Reason = fmt.Sprintf("Codex's reviewer, a model, ended with the unknown word %q, which counts as no "+
			"approval", plain.OneLine(v.Status, 100))
	case v.Status != apptypes.GuardianApprovalReviewStatusApproved:
		m.Refused = about
	case known:
		m.Allowed = about
	default:
		about.Reason += ", which counts as no approval"
	}
	if v.Rationale != "" {
		about.Reason += fmt.Sprintf(", which says: %q", plain.OneLine(v.Rationale, maxRationale))
	}
	if m.Refused != nil && o != nil {
		o.denied, r.asked[key] = true, true
		about.Reason += r.before(o)
	}
	m.Message += about.Reason
	r.host.Emit(m)
	if known && began && v.Status == apptypes.GuardianApprovalReviewStatusDenied {
		r.overrule(n, about)
	}
	if m.Allowed != nil && o != nil && !o.twice && !r.reviewing(key) {
		r.begins(key)
	}
}

// lenient returns what a JSON text has, zero if it has another form.
func lenient[T any](text []byte) (none T) {
	var v T
	if json.Unmarshal(text, &v) != nil {
		return none
	}
	return v
}

// hooked records that a hook of the user's has declined an item that has not begun: the end of a tool's call does not tell.
func (r *turn) hooked(n *apptypes.Note) {
	run := lenient[apptypes.HookRun](n.Run)
	if run.Status != apptypes.HookRunStatusBlocked || run.EventName != apptypes.HookEventNamePermissionRequest {
		return
	}
	for key, o := range r.open {
		o.denied = o.denied || key.thread == n.ThreadID && o.held && strings.HasSuffix(run.ID, ":"+key.id)
	}
}

// reviewing reports whether a review about the start of an item is open.
func (r *turn) reviewing(key itemKey) bool {
	return slices.Contains(slices.Collect(maps.Values(r.reviews)), key)
}

// before returns what the refusal of an item says of a run before it, in Codex's sandbox.
func (r *turn) before(o *openItem) string {
	switch {
	case o.item.Type == apptypes.ThreadItemMCPToolCall:
	case o.first:
		return "; it has run in Codex's sandbox before, and this was about the run outside"
	case !o.held, r.asksTwice():
		return "; it may have run in Codex's sandbox before"
	}
	return ""
}

// asksTwice reports whether Codex may have a second run decided, outside of its sandbox, of a command that failed inside. It
// does so under finer rules than a word, and does not say which of its reviews are about a second run.
func (r *turn) asksTwice() bool { return strings.HasPrefix(string(r.settings.now.Policy), "{") }

// reviewed returns what a review is about: what Codex says of the action, else the item. It reports whether the kind of the
// action is known. Call is the id of the item, "" for none.
func reviewed(call string, o *openItem, act *apptypes.ReviewAction) (s *protocol.Refused, known bool) {
	s, known = &protocol.Refused{}, true
	if o != nil && !o.twice {
		if s = subject(&o.item); o.patch != nil {
			s.Changes = o.patch.Changes
		}
	}
	switch act.Type {
	case apptypes.GuardianApprovalReviewActionCommand:
		s.Command = splitCommand(act.Command)
	case apptypes.GuardianApprovalReviewActionExecve: // of a program that the command starts
		s.Command = act.Argv
	case apptypes.GuardianApprovalReviewActionWriteStdin:
		s.Command = []string{"write_stdin", "--session-id", act.ProcessID, act.Stdin}
	case apptypes.GuardianApprovalReviewActionApplyPatch: // the item has the changes
	case apptypes.GuardianApprovalReviewActionNetworkAccess:
		s.Command = []string{networkAccess, act.Protocol, act.Host}
	case apptypes.GuardianApprovalReviewActionMCPToolCall:
		s.Tool = act.Server + "/" + act.ToolName
	case apptypes.GuardianApprovalReviewActionRequestPermissions:
		s.Command = []string{furtherPermissions, string(act.Permissions)}
	default:
		known = false
	}
	if len(s.Command) == 0 && len(s.Changes) == 0 && s.Tool == "" {
		s.Tool = plain.OneLine("an action that this version cannot show, "+act.Type+": "+strings.Join(act.Files, ", "),
			maxRationale)
	}
	s.Cwd, s.CallID, s.By = act.Cwd, call, string(approval.ByReviewer)
	return s, known
}

// words names what was decided about, on one line.
func words(s *protocol.Refused) string {
	switch {
	case len(s.Command) > 0:
		return "`" + plain.OneLine(elicit.ShowCommand(s.Command), 200) + "`"
	case len(s.Changes) > 0:
		return "changes to " + plain.OneLine(strings.Join(slices.Sorted(maps.Keys(s.Changes)), ", "), 200)
	}
	return plain.OneLine(s.Tool, 200)
}

// toolAsked records that a question about the call of a tool is open, or its answer. It names no call: it is about one that
// has not begun, of the tool, which older versions name only in Codex's message.
func (r *turn) toolAsked(p *apptypes.Elicitation, tool, answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []itemKey
	for key, o := range r.open {
		it := &o.item
		if key.thread == p.ThreadID && o.held && it.Type == apptypes.ThreadItemMCPToolCall &&
			it.Server == p.ServerName &&
			(it.Tool == tool || p.Message == toolMessage(it.Server, it.Tool)) {
			found = append(found, key)
			r.asked[key], o.denied = true, answer != accept && answer != ""
		}
	}
	if answer == accept && len(found) == 1 && !r.ended {
		r.begins(found[0])
	}
}

// toolMessage is what Codex asks about the call of a tool.
func toolMessage(server, tool string) string {
	return fmt.Sprintf(`Allow the %s MCP server to run tool "%s"?`, server, tool)
}

// maxOverrules bounds the open questions of a turn whether a denial is overruled.
const maxOverrules = 8

// overrule asks a person whether a denial of the reviewer's is overruled. The turn goes on meanwhile, and its end withdraws the
// question. The turn's lock is held.
func (r *turn) overrule(n *apptypes.Note, denied *protocol.Refused) {
	event, action := lenient[map[string]any](n.Review), lenient[map[string]any](n.Action)
	if event == nil || action == nil || r.overruling == maxOverrules || r.ctx.Err() != nil {
		return
	}
	event["id"], event["targetItemId"], event["turnId"], event["action"] = n.ReviewID, n.TargetItemID, n.TurnID, action
	event["startedAtMs"], event["completedAtMs"], event["decisionSource"] = n.StartedAtMs, n.CompletedAtMs,
		n.DecisionSource
	r.overruling++
	r.overrules.Go(func() {
		out := r.host.Ask(r.ctx, approval.Overrule{Refused: *denied})
		if out.Decision == elicit.Approved {
			p := &apptypes.OverruleParams{ThreadID: n.ThreadID, Event: snake(event)}
			r.report(protocol.BackgroundEvent{Message: words(denied) + ": " + r.overruled(p), Remark: true})
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.overruling--; out.Decision == elicit.Abort {
			r.abandon(abortReason(out))
		}
	})
}

// overruled tells Codex that a person overrules a denial, and returns what came of it.
func (r *turn) overruled(p *apptypes.OverruleParams) string {
	c := r.thread.child
	err := c.call(r.call, steerLimit, apptypes.CallThreadApproveGuardianDeniedAction, p, nil)
	end, _ := r.app.End()
	switch {
	case err != nil:
		return "the denial was not overruled, because Codex did not take that: " +
			plain.OneLine(c.redact(err.Error()), maxRationale)
	case end != nil:
		return "a person overruled the denial after Codex had ended the turn, so that it counts from the next one"
	}
	return "a person overruled the denial; when Codex's model tries that again, its reviewer decides once more"
}

var capital = lazyregexp.Regexp{Text: "[A-Z]"}

// snake returns an object in the form of Codex's core, where names and words are written as target_item_id.
func snake(object map[string]any) map[string]any {
	name := func(s string) string { return strings.ToLower(capital.Get().ReplaceAllString(s, "_$0")) }
	out := make(map[string]any, len(object))
	for key, value := range object {
		switch v := value.(type) {
		case string:
			if slices.Contains([]string{"type", "source", "protocol"}, key) {
				value = name(v)
			}
		case map[string]any:
			value = snake(v)
		}
		out[name(key)] = value
	}
	return out
}
