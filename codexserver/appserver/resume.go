package appserver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/cut"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// A turn whose server was killed has ended in Codex, too: its app-server was killed with the
// server, or has interrupted the turn when its input ended. Codex cannot go on with it, but its
// rollout has what the model did until then. So the next server begins another turn of the same
// thread, whose message says what happened. Calls without a result count as aborted in Codex,
// which does not run them again.
//
// The rollout does not say who interrupted a turn. What a person stopped is not continued,
// because its task does not say how: see tools.Turn.Resume.

const (
	// writerLimit is how long a thread may still be that of the app-server that is being killed.
	writerLimit = 5 * time.Second
	writerPause = 50 * time.Millisecond
)

// errTurnLost reports a turn whose beginning is not in the rollout, which may be that of another
// machine as it was at the end of the turn before.
var errTurnLost = errors.New("the server ended before or while this turn ran, and its machine may have been another " +
	"one: what the turn has done is not known, and was not repeated; find out what it has done, and send the message " +
	"again")

// Resume implements [engine.Resumer]. Cfg overrides the settings with which the
// conversation was started, unless this app-server still has its thread loaded. A thread whose turn
// continues is resumed with the policies that the turn had, as far as the configuration allows no less.
func (e *Engine) Resume(
	ctx context.Context, saved engine.Saved, cfg protocol.Config, host engine.Host,
) (engine.Conversation, error) {
	if !strings.HasSuffix(saved.File, saved.ID+".jsonl") {
		return nil, &engine.RefusedError{Err: fmt.Errorf("%q is not the file of conversation %s", saved.File, saved.ID)}
	}
	if _, err := os.Stat(saved.File); err != nil {
		return nil, fmt.Errorf("%s: %w", saved.File, engine.ErrNotFound)
	}
	had, model, err := lastPolicies(saved.File)
	if cfg.Continues {
		if err != nil {
			return nil, err
		}
		if had == nil {
			return nil, &engine.RefusedError{Err: errors.New("the sandbox of the turn is not known, so it is not " +
				"continued")}
		}
		cfg.Model = cmp.Or(cfg.Model, model)
	}
	c, err := e.childFor(ctx, cfg.Cwd)
	if err != nil {
		return nil, err
	}
	was := &earlier{had: had}
	if was.kept, err = c.choices.Get(saved.ID, nil); err != nil {
		return nil, &engine.RefusedError{Err: err}
	}
	formed := was.unform()
	if was.Thread, err = c.read(ctx, saved.ID); err != nil {
		// thread/resume reports the error
		c.log.Debug("codex: the working folder of a thread is unknown", "thread", saved.ID, "error", err)
	}
	s, err := e.settings(ctx, cfg, c, was)
	if err != nil {
		return nil, err
	}
	s.formed = formed
	for deadline := time.Now().Add(writerLimit); ; {
		conv, err := e.begin(ctx, c, saved.ID, s, host)
		if errors.Is(err, errNoRollout) {
			err = fmt.Errorf("conversation %s: %w", saved.ID, engine.ErrNotFound)
		}
		if !cfg.Continues || !errors.Is(err, errWriter) || time.Now().After(deadline) {
			return conv, err
		}
		select {
		case <-time.After(writerPause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Find implements [engine.Resumer].
func (e *Engine) Find(ctx context.Context, id string) (engine.Saved, error) {
	if err := uuid.Validate(id); err != nil {
		return engine.Saved{}, fmt.Errorf("%q is not the id of a conversation: %w: %w", id, err, engine.ErrNotFound)
	}
	c, err := e.child(ctx)
	if err != nil {
		return engine.Saved{}, err
	}
	s, err := c.read(ctx, id)
	if err != nil {
		return engine.Saved{}, err
	}
	if s.Path == "" {
		return engine.Saved{}, fmt.Errorf("conversation %s: %w", id, engine.ErrNotFound)
	}
	return engine.Saved{ID: strings.ToLower(id), File: s.Path}, nil
}

// read returns what Codex says of a thread, which is empty if there is no such thread.
func (c *child) read(ctx context.Context, id string) (apptypes.Thread, error) {
	var r apptypes.ThreadReply
	err := c.control(ctx, apptypes.CallThreadRead, apptypes.ThreadRef{ThreadID: id}, &r)
	if errors.Is(err, errNoRollout) {
		err = nil
	}
	return r.Thread, err
}

// canContinue returns why turns of processes that have ended cannot be continued, or nil.
func (e *Engine) canContinue(ctx context.Context) error {
	c, err := e.child(ctx)
	switch {
	case err != nil:
		return err
	case c.version.Less(continuesTurns):
		return fmt.Errorf("codex %s does not record which turn a message began; %s does", c.version, continuesTurns)
	}
	return nil
}

// goesOn runs a turn that continues one whose server was killed.
func (c *conversation) goesOn(ctx context.Context, in protocol.TurnInput) error {
	turns, err := rolloutTurns(c.path, in.Key)
	var last *cut.Turn
	if err == nil {
		last, err = cut.Last(turns)
	}
	if errors.Is(err, cut.ErrNotBegun) {
		if c.engine.options.Store != nil {
			err = errTurnLost
		} else if len(in.Items) > 0 {
			in.Continue = nil
			return c.Turn(ctx, in)
		}
	}
	if err == nil {
		var open []cut.Call
		for _, t := range turns {
			if t.Own {
				open = append(open, t.Open...)
			}
		}
		// the last turn may have ended in a server that was killed before it could tell of them
		in.Items = cut.Message(open, in.Continue)
		if end, completed := last.End.(protocol.TaskComplete); completed {
			c.host.Emit(protocol.TaskStarted{})
			if end.LastAgentMessage != nil {
				c.host.Emit(protocol.AgentMessage{Message: *end.LastAgentMessage})
			}
			c.host.Emit(end)
			return nil
		}
	}
	defer c.formless()
	return c.run(ctx, false, func(ctx context.Context, r *turn) error {
		if err != nil {
			return err
		}
		if failed, is := last.End.(protocol.Error); is {
			ch, err := c.engine.child(ctx)
			if err != nil {
				return err
			}
			return errors.New(ch.redact(failed.Message))
		}
		c.host.Emit(cut.Event())
		return c.start(ctx, r, in)
	})
}

// rolloutTurns reads the turns of a rollout. Those that the message with the key began are the own ones.
func rolloutTurns(path, key string) (turns []cut.Turn, err error) {
	last := &cut.Turn{} // before the first
	err = rolloutLines(path, "", func(l *rolloutLine, whole bool) {
		switch p := &l.Payload; {
		case !whole:
		case l.Type == protocol.RolloutEventMsg && p.Type == "task_started":
			turns = append(turns, cut.Turn{})
			last = &turns[len(turns)-1]
		case l.Type == protocol.RolloutEventMsg && p.Type == "item_completed":
			last.Own, last.Form = last.Own || p.Item.ClientID == key, last.Form || p.Item.ClientID == cut.FormKey(key)
			last.Said = last.Said || p.Item.Type == "UserMessage"
		case l.Type == protocol.RolloutEventMsg && p.Type == "task_complete":
			if last.End = protocol.EventMsg(protocol.TaskComplete{LastAgentMessage: p.Answer}); p.Error != nil {
				last.End = protocol.Error{Message: p.Error.Message}
			}
		case p.Type == "function_call" || p.Type == "custom_tool_call":
			var input string
			_ = json.Unmarshal(p.Input, &input, jsontext.AllowInvalidUTF8(true)) // "" if it is not text
			call := cut.Of(p.Name, p.Arguments+input)
			call.ID = p.CallID
			last.Open = append(last.Open, call)
		case (p.Type == "function_call_output" || p.Type == "custom_tool_call_output") &&
			!bytes.HasSuffix(p.Output, []byte(`aborted by user"`)):
			last.Open = slices.DeleteFunc(last.Open, func(c cut.Call) bool { return c.ID == p.CallID })
		}
	})
	return turns, err
}

// lastPolicies reads the policies and the model of the last turn of a rollout; nil if they are not known.
func lastPolicies(path string) (grant *decide.Grant, model string, err error) {
	err = rolloutLines(path, `"`+string(protocol.RolloutTurnContext)+`"`, func(l *rolloutLine, whole bool) {
		switch p := &l.Payload; {
		case !whole, l.Type == protocol.RolloutTurnContext && decide.Width(p.Sandbox.Type) < 0:
			grant = nil // it may have other policies than those before, which cannot be compared
		case l.Type == protocol.RolloutTurnContext:
			model = p.Model
			grant = &decide.Grant{Cwd: p.Cwd, Policy: policyWord(policyOf([]byte(p.Policy))),
				Sandbox: p.Sandbox.SandboxPolicy}
			grant.Sandbox.Mode = p.Sandbox.Type
		}
	})
	return grant, model, err
}

// rolloutLine is a line of a rollout, as far as it is read.
type rolloutLine struct {
	Type    protocol.RolloutType `json:"type"`
	Payload struct {
		Type      string              `json:"type"`
		CallID    string              `json:"call_id"`
		Name      string              `json:"name"`
		Arguments string              `json:"arguments"`
		Input     jsontext.Value      `json:"input"`
		Output    jsontext.Value      `json:"output"`
		Answer    *string             `json:"last_agent_message"`
		Error     *apptypes.TurnError `json:"error"`
		Item      struct {
			Type     string `json:"type"`
			ClientID string `json:"client_id"`
		} `json:"item"`
		// The policies of a turn.
		Cwd     string         `json:"cwd"`
		Model   string         `json:"model"`
		Policy  jsontext.Value `json:"approval_policy"`
		Sandbox struct {
			Type protocol.SandboxMode `json:"type"`
			protocol.SandboxPolicy
		} `json:"sandbox_policy"`
	} `json:"payload"`
}

// maxRollout is how long a rollout may be to be read, in bytes.
const maxRollout = 1 << 30

// rolloutLines calls add with each line of a rollout that has a part. Whole is false for one that cannot be read.
func rolloutLines(path, part string, add func(l *rolloutLine, whole bool)) error {
	f, err := safefile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Info().Size() > maxRollout {
		return fmt.Errorf("%s is longer than %d bytes", path, maxRollout)
	}
	for in := bufio.NewReader(io.LimitReader(f, maxRollout)); ; {
		line, err := in.ReadBytes('\n')
		if err != nil { // the last line may not be whole
			return nil
		}
		if bytes.Contains(line, []byte(part)) {
			var l rolloutLine
			err := json.Unmarshal(line, &l, jsontext.AllowInvalidUTF8(true))
			add(&l, err == nil)
		}
	}
}
