package appserver

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// shorten runs a turn that changes the history first. Codex summarises in a turn of its own,
// and takes turns back between turns.
func (c *conversation) shorten(ctx context.Context, in protocol.TurnInput) error {
	var done []string
	start := func(ctx context.Context) (*turn, error) {
		if in.Rollback > 0 {
			if err := c.takeBack(ctx, in.Rollback); err != nil {
				return nil, err
			}
			done = append(done, fmt.Sprintf("Taken back with what followed: %d of the last prompts. Files stay as they are.", in.Rollback))
		}
		if in.Compact {
			s, err := c.startCompaction(ctx)
			done = append(done, "The conversation was summarised.")
			if err != nil || len(in.Items) == 0 {
				return s, err
			}
			_, err = s.await(ctx)
			if l := c.limited(s, rolloutMark{}, err); l != nil {
				l.before, err = true, l
			}
			s.finish(nil)
			s.thread.free()
			if err != nil {
				return nil, fmt.Errorf("summarising the conversation: %w", err)
			}
		}
		if len(in.Items) == 0 {
			return nil, nil
		}
		return c.start(ctx, in)
	}
	return c.run(ctx, start, func(_ context.Context, _ *turn, last []protocol.EventMsg) {
		if len(in.Items) > 0 {
			return
		}
		words := strings.Join(done, " ")
		for i := range last {
			if _, ok := last[i].(protocol.TaskComplete); ok {
				last[i] = protocol.TaskComplete{LastAgentMessage: &words}
			}
		}
	})
}

// startCompaction starts the turn in which Codex summarises the conversation.
func (c *conversation) startCompaction(ctx context.Context) (*turn, error) {
	return c.inThread(ctx, func(t *thread) (*turn, error) {
		if err := t.claim(ctx); err != nil {
			return nil, err
		}
		turn, err := t.begin(ctx, c.host)
		if err != nil {
			t.free()
			return nil, err
		}
		return turn.request(ctx, apptypes.CallThreadCompactStart, apptypes.ThreadRef{ThreadID: t.id})
	})
}

// takeBack makes Codex forget the last n turns with a message of the user.
func (c *conversation) takeBack(ctx context.Context, n int) error {
	_, err := c.inThread(ctx, func(t *thread) (*turn, error) {
		if err := t.claim(ctx); err != nil {
			return nil, err
		}
		defer t.free()
		if _, err := t.settle(ctx); err != nil {
			return nil, err
		}
		path, err := t.revert(ctx, n)
		if err == nil {
			c.unread = nil
		}
		if path != "" {
			c.path = path
		}
		return nil, err
	})
	return err
}

// revert takes back the last n prompts of the thread. It returns the path of the rollout,
// which Codex may continue in another file.
func (t *thread) revert(ctx context.Context, n int) (path string, err error) {
	var r apptypes.RevertReply
	before, err := t.prompt(ctx, n)
	if err == nil {
		err = t.child.call(ctx, startLimit, apptypes.CallThreadRevert, apptypes.RevertParams{ThreadID: t.id, BeforeTurnID: before}, &r)
	}
	var refusal *jsonrpc.Error
	if errors.As(err, &refusal) && !refused(err, "thread not found") {
		// Before 0.151, conversations had another form, for which later versions lack a method.
		// It takes all turns back if there are fewer.
		if have, ok := t.prompts(ctx); ok && have < n {
			return "", tooFew(have)
		}
		r = apptypes.RevertReply{}
		if t.child.call(ctx, startLimit, callRollback, map[string]any{"threadId": t.id, "numTurns": n}, &r) != nil {
			return "", &engine.RefusedError{Err: fmt.Errorf("rollback: codex %s cannot take back prompts of this conversation (%s); summarise it with compact, or begin a new one",
				t.child.version, redact(refusal.Message))}
		}
		err = nil
	}
	return r.Thread.Path, err
}

// prompt returns the id of the turn of the n-th prompt from the end.
func (t *thread) prompt(ctx context.Context, n int) (turn string, err error) {
	found := 0
	for one, err := range t.child.turnsOf(ctx, t.id) {
		if err != nil {
			return "", err
		}
		if hasPrompt(one) {
			found++
		}
		if found == n {
			return one.ID, nil
		}
	}
	return "", tooFew(found)
}

func tooFew(prompts int) error {
	return &engine.RefusedError{Err: fmt.Errorf("rollback: the conversation has only %d prompts", prompts)}
}

// prompts counts the prompts of a thread, in versions that cannot list its turns.
func (t *thread) prompts(ctx context.Context) (n int, ok bool) {
	var r struct {
		Thread struct {
			Turns []apptypes.Turn `json:"turns"`
		} `json:"thread"`
	}
	if t.child.call(ctx, controlLimit, callRead, map[string]any{"threadId": t.id, "includeTurns": true}, &r) != nil {
		return 0, false
	}
	for _, one := range r.Thread.Turns {
		if hasPrompt(&one) {
			n++
		}
	}
	return n, true
}

// hasPrompt reports whether a turn began with a message of the user, and not with a request
// for a summary.
func hasPrompt(t *apptypes.Turn) bool {
	return slices.ContainsFunc(t.Items, func(raw stdjson.RawMessage) bool { return typeOf(raw) == apptypes.ThreadItemUserMessage })
}
