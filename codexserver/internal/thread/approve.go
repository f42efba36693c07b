package thread

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ApproveExec implements [engine.Host].
func (t *Thread) ApproveExec(ctx context.Context, r protocol.ExecApprovalRequest) elicit.Outcome {
	r.Once = r.Once || t.board.Person(r)
	if r.Human {
		r.Notes = append(slices.Clip(r.Notes), "Only a person may approve this, each time.")
	}
	q := approval.ExecQuestion(r, t.about.Engine, home())
	m := t.deliver("", r, "") // without waiting for the client, because the desk may answer
	return t.decide(ctx, m, q).Outcome
}

// ApproveHost implements [engine.Host].
func (t *Thread) ApproveHost(ctx context.Context, r protocol.HostRequest) elicit.Outcome {
	r.Once = t.board.Person(r)
	return t.decide(ctx, r, approval.HostQuestion(r, home())).Outcome
}

// ApprovePatch implements [engine.Host].
func (t *Thread) ApprovePatch(ctx context.Context, r protocol.PatchApprovalRequest) elicit.Outcome {
	r.Why = whyOf(&r)
	q := approval.PatchQuestion(r, t.about.Engine, home())
	return t.decide(ctx, t.deliver("", r, ""), q).Outcome
}

// Approve implements [engine.Host].
func (t *Thread) Approve(ctx context.Context, q *elicit.Question) elicit.Outcome {
	const kind = "approval_request"
	raw, err := json.Marshal(struct {
		Type    string         `json:"type"`
		Message string         `json:"message"`
		Meta    map[string]any `json:"_meta"`
	}{kind, q.Message, q.Meta}, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		raw = []byte(`{"type":"` + kind + `"}`) // the question's _meta is not JSON
	}
	return t.decide(ctx, protocol.RawEvent{Type: kind, Raw: raw}, q).Outcome
}

// Overrule implements [engine.Host].
func (t *Thread) Overrule(ctx context.Context, r protocol.OverruleRequest) elicit.Outcome {
	return t.decide(ctx, r, approval.OverruleQuestion(r, t.about.Engine)).Outcome
}

// decide gets the decision about a question. It reports both. If
// there was no answer, an event reports why.
func (t *Thread) decide(ctx context.Context, m protocol.EventMsg, q *elicit.Question) approval.Decision {
	t.mu.Lock()
	at := t.now()
	r := &approval.Request{Thread: t.about, Turn: at.Submission, Event: m, Question: q, Timeout: at.Timeout}
	if at.Review != "" {
		r.Deny = denyInReview
	}
	t.mu.Unlock()
	if q.Meta == nil {
		asked := *q // a copy, because the question of Approve is the engine's
		asked.Meta, asked.Always = map[string]any{MetaFacts: facts(r)}, t.board.Offer(r)
		r.Question = &asked
	}
	t.kept.Asked(r)
	at.Turn.Open(r)
	if at.metrics != nil {
		at.metrics.Asked(r)
	}
	d := t.board.Decide(ctx, r, at.Comes)
	t.submit()
	t.kept.Decided(r, d)
	at.Turn.Decided(r, d)
	if d.Level >= slog.LevelWarn {
		t.say(Event{Notice: d.Detail})
	}
	if at.metrics != nil {
		at.metrics.Decided(r, d)
	}
	words := d.ForCaller()
	if d.By == approval.ByRule && r.Call() != "" {
		words = d.Detail // which rule allows or denies it
	}
	if words != "" {
		t.deliver("", protocol.BackgroundEvent{Message: words}, "")
	}
	if d.Decision == elicit.ApprovedAlways {
		d.Decision = elicit.Approved // for the engine, which does not keep the rule
	}
	return d
}

// MetaFacts is the member of [elicit.Question.Meta] with the facts of a question, for clients
// that show more than its message.
const MetaFacts = "codex/approval"

// facts returns threadId, eventId, and for a command or a patch also kind, callId, command
// and cwd or changes, reason, and reach.
func facts(r *approval.Request) map[string]any {
	m := map[string]any{"threadId": r.Thread.ID, "eventId": r.Turn}
	var reason string
	switch e := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		m["kind"], m["callId"], m["command"], m["cwd"], reason = "exec", e.CallID, e.Command, e.Cwd, e.Reason
	case protocol.PatchApprovalRequest:
		m["kind"], m["callId"], m["changes"], reason = "patch", e.CallID, e.Changes, e.Reason
	case protocol.HostRequest:
		m["kind"], m["callId"], m["host"], m["command"], m["cwd"] = "host", e.CallID, e.Host, e.Command, e.Cwd
	case protocol.AccessRequest:
		m["kind"], m["access"], m["client"] = "access", e.Access, e.Client
	}
	if reason != "" {
		m["reason"] = reason
	}
	if r.Question.Reach != "" {
		m["reach"] = r.Question.Reach
	}
	return m
}

// home returns the home folder of the person, "" if there is none.
func home() string {
	dir, _ := os.UserHomeDir()
	return dir
}

// othersRun is why a file deserves attention that is protected by its name.
const othersRun = "other programs run it or obey it"

// othersStart is why a file deserves attention that other programs run or obey once a person or a
// service starts them.
const othersStart = "other programs run it"

// startNames are the names of such files, in lower case. Patches of them are asked about no more than
// others: only the question names them first.
var startNames = []string{
	"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", // scripts, and where packages come from
	"makefile", "gnumakefile", "justfile", "taskfile.yml", "build.rs", "setup.py", "conftest.py", // what builds and tests run
	".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".gitattributes", ".gitmodules", // what git runs, once it is set up
	"agents.md", "claude.md", "gemini.md", // what agents are told
	".gitlab-ci.yml", "jenkinsfile", "action.yml", "action.yaml", // services
}

// startFolders are those of which services run each file.
var startFolders = []string{"/.github/workflows/", "/.circleci/", "/.buildkite/"}

// starts reports whether other programs run or obey a file once they are started.
func starts(path string) bool {
	path = strings.ToLower(filepath.ToSlash(path))
	return slices.Contains(startNames, path[strings.LastIndexByte(path, '/')+1:]) ||
		slices.ContainsFunc(startFolders, func(folder string) bool { return strings.Contains(path, folder) })
}

// whyOf returns why paths of a patch deserve attention, from its engine and by their names: as
// they are, and as the patch names them.
func whyOf(r *protocol.PatchApprovalRequest) map[string]string {
	real := make(map[string]string, len(r.Changes)) // by the name in the patch
	for path, f := range r.Changes {
		real[path] = path
		if to := f.MovedTo(); to != "" {
			real[to] = to
		}
	}
	for path, via := range r.Links {
		real[via] = path
	}
	why := map[string]string{}
	for path := range real {
		if starts(path) {
			why[real[path]] = othersStart
		}
	}
	for _, path := range patch.ProtectedOf(slices.Sorted(maps.Keys(real)), []string{r.Cwd}) {
		why[real[path]] = othersRun
	}
	for path, text := range r.Why {
		if name := why[path]; name != "" {
			text += "; " + name
		}
		why[path] = text
	}
	return why
}
