package thread

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Ask implements [engine.Host].
func (t *Thread) Ask(ctx context.Context, s approval.Subject) elicit.Outcome {
	return t.decide(ctx, s).Outcome
}

// decide gets the decision about a subject. It reports the question, without waiting for the client, because the desk
// may answer, and the decision. If there was no answer, an event reports why.
func (t *Thread) decide(ctx context.Context, s approval.Subject) approval.Decision {
	s = s.Complete(t.board.Each(s))
	if m := s.Event(); m != nil {
		t.deliver("", m, "")
	}
	t.mu.Lock()
	seat := t.now()
	r := &approval.Request{
		Thread: t.about, Turn: seat.Submission, TurnID: seat.id,
		Subject: s, Question: s.Question(t.about.Engine, home()), Timeout: seat.Timeout,
	}
	if seat.Review != "" {
		r.Deny = denyInReview
	}
	t.mu.Unlock()
	if seat.Attempt != "" {
		sayAttempt(r.Question, seat.Attempt)
	}
	if r.Question.Meta == nil {
		r.Question.Meta, r.Question.Always = map[string]any{MetaFacts: facts(r)}, t.board.Offer(r)
	}
	t.kept.Asked(r)
	seat.Turn.Open(r)
	if seat.metrics != nil {
		seat.metrics.Asked(r)
	}
	d := t.board.Decide(ctx, r, seat.Comes)
	t.submit()
	t.kept.Decided(r, d)
	seat.Turn.Decided(r, d)
	if d.Level >= slog.LevelWarn {
		t.say(Event{Notice: d.Detail})
	}
	if seat.metrics != nil {
		seat.metrics.Decided(r, d)
	}
	words := d.ForCaller()
	if d.By == approval.ByRule && s.Effect() == approval.Begins {
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

// sayAttempt has a question say which of several attempts asks it. A brief one says it if it has room.
func sayAttempt(q *elicit.Question, attempt string) {
	note := "This is " + attempt + "."
	q.Message += "\n" + note
	if q.Older != "" {
		q.Older += "\n" + note
	}
	if q.Brief != nil {
		brief := *q.Brief
		brief.Reason = strings.TrimSpace(note + " " + brief.Reason)
		q.Brief = &brief
	}
}

// MetaFacts is the member of [elicit.Question.Meta] with the facts of a question, for clients
// that show more than its message.
const MetaFacts = "codex/approval"

// facts returns threadId, eventId, reach, and those of the subject.
func facts(r *approval.Request) map[string]any {
	m := map[string]any{"threadId": r.Thread.ID, "eventId": r.Turn}
	maps.Copy(m, r.Subject.Meta())
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
