package appserver

import (
	"bytes"
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/internal/wire"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
)

// Codex's reviewer is a sub-agent. It does not see the thread's conversation, never asks,
// and runs in the thread's sandbox, so the thread must be read-only. If the conversation's
// thread is not, a new thread reviews in its place.

// Review implements [engine.Reviewer].
func (c *conversation) Review(ctx context.Context, r protocol.Review) error {
	reviewer := c
	var begun *turnCall
	defer func() {
		if reviewer != c {
			reviewer.remove(begun)
		}
	}()
	start := func(ctx context.Context) (*turnCall, error) {
		if !c.params.readOnly {
			other, err := c.reviewer(ctx)
			if err != nil {
				return nil, err
			}
			reviewer = other
		}
		var err error
		begun, err = reviewer.startReview(ctx, &r)
		return begun, err
	}
	return c.run(ctx, start, func(ctx context.Context, s *turnCall, last []protocol.EventMsg) {
		if reviewer != c {
			c.learn(ctx, s, &r)
		}
		reviewer.takeAnswer(ctx, s, last)
	})
}

// reviewer starts a thread that is like the conversation's but read-only.
func (c *conversation) reviewer(ctx context.Context) (*conversation, error) {
	ch, err := c.engine.child(ctx)
	if err != nil {
		return nil, err
	}
	t, err := c.thread(ctx, ch, false)
	if err != nil {
		return nil, err
	}
	p := c.params
	p.ThreadID, p.ExcludeTurns, p.Cwd = "", false, t.folder()
	file, err := ch.config(ctx, p.Cwd)
	if err != nil {
		return nil, err
	}
	if err := p.keepToReading(file); err != nil {
		return nil, err
	}
	p.Model = cmp.Or(p.Model, c.model)
	keys := map[string]string{}
	if _, own := p.Config["model_provider"]; !own && c.source != "" {
		keys["model_provider"] = c.source
	}
	c.mu.Lock()
	if c.context != nil {
		p.Model = c.context.Model
		if c.context.Effort != "" {
			keys["model_reasoning_effort"] = string(c.context.Effort)
		}
	}
	c.mu.Unlock()
	for key, value := range keys {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		p.Config[key] = raw
	}
	conv, err := c.engine.begin(ctx, ch, wire.CallThreadStart, p, silent{c.host})
	if err != nil {
		return nil, fmt.Errorf("the reviewer's own thread: %w", err)
	}
	other := conv.(*conversation)
	other.host, other.reviews = c.host, ch
	return other, nil
}

// silent is a host that receives no events.
type silent struct{ engine.Host }

func (silent) Emit(protocol.EventMsg) {}

// keepToReading lets a thread only run commands that read, as far as Codex has settings
// for that. File is the configuration without p.
func (p *threadParams) keepToReading(file map[string]stdjson.RawMessage) error {
	servers, err := serversOf(file, p.Config)
	if err != nil {
		return err
	}
	p.Config = maps.Clone(p.Config)
	if p.Config == nil {
		p.Config = map[string]stdjson.RawMessage{}
	}
	for name := range servers {
		p.Config[serverKey(name, "enabled")] = stdjson.RawMessage("false")
	}
	p.Config["web_search"] = stdjson.RawMessage(`"disabled"`)
	p.Config["features.apps"], p.Config["features.plugins"] = stdjson.RawMessage("false"), stdjson.RawMessage("false")
	p.Sandbox, p.ApprovalPolicy, p.readOnly = string(protocol.SandboxReadOnly), string(protocol.ApprovalNever), true
	return nil
}

// isReadOnly returns an error unless Codex reports that the thread cannot write or reach
// the network, and never asks for more.
func (r *threadReply) isReadOnly() error {
	if network := string(r.Sandbox.NetworkAccess); r.Sandbox.Type == wire.SandboxPolicyReadOnly && (network == "" || network == "false" || network == "null") && r.policy() == string(protocol.ApprovalNever) {
		return nil
	}
	return fmt.Errorf("no review: codex would not run it read-only, but in the sandbox %q under the approval policy %.100s", r.Sandbox.Type, r.ApprovalPolicy)
}

// startReview starts a review in the conversation's thread, which is read-only.
func (c *conversation) startReview(ctx context.Context, r *protocol.Review) (*turnCall, error) {
	return c.inThread(ctx, func(t *thread) (*turnCall, error) {
		if err := c.claim(ctx, t); err != nil {
			return nil, err
		}
		turn, err := t.begin(ctx, c.host, true)
		if err != nil {
			t.free()
			return nil, err
		}
		return turn.request(ctx, wire.CallReviewStart, wire.ReviewParams{ThreadID: c.id, Target: targetOf(r)})
	})
}

// targetOf returns the target in Codex's form. Codex has no form for a target with
// instructions, so these are sent as a prompt.
func targetOf(r *protocol.Review) wire.ReviewTarget {
	switch {
	case r.Instructions != "":
	case r.Target == protocol.ReviewUncommitted:
		return wire.ReviewTarget{Type: wire.ReviewTargetUncommittedChanges}
	case r.Target == protocol.ReviewBase:
		return wire.ReviewTarget{Type: wire.ReviewTargetBaseBranch, Branch: r.Revision}
	case r.Target == protocol.ReviewCommit:
		return wire.ReviewTarget{Type: wire.ReviewTargetCommit, SHA: r.Revision}
	}
	return wire.ReviewTarget{Type: wire.ReviewTargetCustom, Instructions: r.Prompt}
}

// nameReview records the ids of a review from its notifications: those of items have the
// id of the review, turn/started has the id of the reviewer's turn.
func (r *turn) nameReview(method, id string) {
	switch {
	case method == wire.NoteTurnStarted:
		r.mu.Lock()
		r.reviewer = id
		r.mu.Unlock()
	case strings.HasPrefix(method, "item/"):
		r.named(id)
	}
}

// cutPause is the time between two attempts to interrupt a review.
const cutPause = 100 * time.Millisecond

// cutReview tries to interrupt a review until it succeeds or the review ends. Once the
// reviewer has a turn, Codex takes only that turn's id.
func (r *turn) cutReview(ctx context.Context) {
	c := r.thread.child
	for {
		r.mu.Lock()
		id := cmp.Or(r.reviewer, r.id)
		r.mu.Unlock()
		if id != "" && c.peer.Call(ctx, wire.CallTurnInterrupt, wire.InterruptParams{ThreadID: r.thread.id, TurnID: id}, nil) == nil {
			return
		}
		pause := time.NewTimer(cutPause)
		select {
		case <-pause.C:
			continue
		case <-r.completed:
		case <-c.gone:
		case <-ctx.Done():
		}
		pause.Stop()
		return
	}
}

// takeAnswer puts the reviewer's answer into the last events. The app-server sends only a
// text without the verdict, so the answer is read from the rollout.
func (c *conversation) takeAnswer(ctx context.Context, s *turnCall, last []protocol.EventMsg) {
	answer, err := awaitAnswer(ctx, c.path, s.name())
	if err != nil {
		c.host.Emit(protocol.BackgroundEvent{Message: fmt.Sprintf("the reviewer's answer cannot be read: %v", err)})
		return
	}
	for i := range last {
		if _, ok := last[i].(protocol.TaskComplete); ok {
			last[i] = protocol.TaskComplete{LastAgentMessage: &answer}
		}
	}
}

// How often, and how many times, the rollout is read after the end of the turn.
const (
	answerPause = 100 * time.Millisecond
	answerTries = 30
)

func awaitAnswer(ctx context.Context, path, turn string) (answer string, err error) {
	for range answerTries {
		if answer, err = answerIn(path, turn); err == nil || ctx.Err() != nil {
			break
		}
		pause := time.NewTimer(answerPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
		}
	}
	return answer, err
}

// maxRollout bounds the rollout of a reviewer, in bytes.
const maxRollout = 256 << 20

var errNoAnswer = errors.New("it is not in the conversation's file")

// answerIn returns the reviewer's answer in a turn from a rollout.
func answerIn(path, turn string) (string, error) {
	data, err := safefile.Read(path, maxRollout)
	if err != nil {
		return "", err
	}
	err = errNoAnswer
	var answer string
	for line := range bytes.Lines(data) {
		if !bytes.Contains(line, []byte(`"review_output"`)) {
			continue
		}
		var l struct {
			Payload struct {
				Type   string `json:"type"`
				TurnID string `json:"turn_id"`
				Item   struct {
					Type   string             `json:"type"`
					Output stdjson.RawMessage `json:"review_output"`
				} `json:"item"`
				Output stdjson.RawMessage `json:"review_output"` // of older versions
			} `json:"payload"`
		}
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		p := &l.Payload
		output := p.Output
		switch {
		case p.Type == "item_completed" && p.Item.Type == "ExitedReviewMode" && p.TurnID == turn:
			output = p.Item.Output
		case p.Type != "exited_review_mode":
			continue
		}
		if len(output) > 0 && string(output) != "null" {
			answer, err = string(output), nil
		}
	}
	return answer, err
}

// learn adds what the reviewer found to the conversation's thread.
func (c *conversation) learn(ctx context.Context, s *turnCall, r *protocol.Review) {
	s.mu.Lock()
	found := s.tr.answer()
	s.mu.Unlock()
	if found == nil {
		return
	}
	words := strings.TrimSpace("Another reviewer has looked at the changes here: " + string(r.Target) + " " + r.Revision)
	items := []protocol.ResponseItem{
		protocol.MessageItem{Role: "user", Content: []protocol.ContentItem{{Type: "input_text", Text: words + ". What it found:\n\n" + *found}}},
	}
	p := wire.InjectParams{ThreadID: c.id}
	for _, item := range items {
		raw, err := protocol.AppendItem(nil, item)
		if err != nil {
			return // cannot happen: the item is text
		}
		p.Items = append(p.Items, raw)
	}
	if err := s.thread.child.control(ctx, wire.CallThreadInjectItems, p, nil); err != nil {
		c.host.Emit(protocol.BackgroundEvent{Message: fmt.Sprintf("what the review found could not be added to the conversation: %v", err)})
	}
}

// remove deletes the thread of a reviewer after its turn has ended in the app-server. It
// does not wait. A thread that cannot be deleted stays in Codex's list.
func (c *conversation) remove(s *turnCall) {
	ch := c.reviews
	ch.run.Go(func() {
		ctx, stop := context.WithTimeout(context.Background(), interruptLimit)
		defer stop()
		if s != nil {
			select {
			case <-s.completed:
			case <-ch.gone:
				return
			case <-ctx.Done():
				return
			}
		}
		if err := ch.peer.Call(ctx, wire.CallThreadDelete, wire.ThreadRef{ThreadID: c.id}, nil); err != nil {
			ch.log.Debug("codex: the reviewer's thread is left", "thread", c.id, "error", err)
		}
		if t := ch.find(c.id); t != nil {
			ch.forget(t)
		}
	})
}
