package appserver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/cut"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
var errTurnLost = errors.New("the server ended before or while this turn ran, and its machine may have been another one: what the turn has done is not known, and was not repeated; find out what it has done, and send the message again")

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

// lastPolicies reads the policies and the model of the last turn of a rollout; nil if they are not known.
func lastPolicies(path string) (grant *box.Grant, model string, err error) {
	err = lastLines(path, func(line []byte) {
		if !bytes.Contains(line, []byte(`"`+protocol.RolloutTurnContext+`"`)) {
			return
		}
		var l rolloutLine
		broken := json.Unmarshal(line, &l, jsontext.AllowInvalidUTF8(true)) != nil
		p := &l.Payload
		switch {
		case broken, l.Type == protocol.RolloutTurnContext && box.Width(p.Sandbox.Type) < 0:
			grant = nil // it may have other policies than those before, which cannot be compared
		case l.Type == protocol.RolloutTurnContext:
			model = p.Model
			grant = &box.Grant{Cwd: p.Cwd, Policy: policyWord(policyOf([]byte(p.Policy))),
				Sandbox: protocol.SandboxPolicy{
					Mode: p.Sandbox.Type, WritableRoots: p.Sandbox.Roots, NetworkAccess: string(p.Sandbox.Network) == "true",
					ExcludeSlashTmp: p.Sandbox.NoTmp, ExcludeTmpdirEnvVar: p.Sandbox.NoTmpdir,
				}}
		}
	})
	return grant, model, err
}

// rolloutTurn is a turn in a rollout.
type rolloutTurn struct {
	id     string
	own    bool           // a message with the key began it
	open   []*rolloutCall // without a result
	done   bool           // it completed, with the answer
	answer *string
}

// rolloutTurns reads the turns of a rollout. Those are own that a message with a key began: a turn, and
// those that continued it.
func rolloutTurns(path, key string) ([]*rolloutTurn, error) {
	last := &rolloutTurn{own: true} // in doubt, calls before the part that is read are named
	turns := []*rolloutTurn{last}
	err := lastLines(path, func(line []byte) {
		var l rolloutLine
		if json.Unmarshal(line, &l, jsontext.AllowInvalidUTF8(true)) != nil {
			return
		}
		switch p := &l.Payload; {
		case l.Type == protocol.RolloutEventMsg && p.Type == "task_started":
			last = &rolloutTurn{id: p.TurnID}
			turns = append(turns, last)
		case l.Type == protocol.RolloutEventMsg && p.Type == "item_completed":
			last.own = last.own || p.Item.ClientID == key
		case l.Type == protocol.RolloutEventMsg && p.Type == "task_complete":
			last.done, last.answer = true, p.Answer
		case p.Type == "function_call" || p.Type == "custom_tool_call":
			var input string
			_ = json.Unmarshal(p.Input, &input, jsontext.AllowInvalidUTF8(true)) // "" if it is not text
			last.open = append(last.open, &rolloutCall{p.CallID, cut.Of(p.Name, p.Arguments+input)})
		case (p.Type == "function_call_output" || p.Type == "custom_tool_call_output") && !bytes.HasSuffix(p.Output, []byte(`aborted by user"`)):
			last.open = slices.DeleteFunc(last.open, func(c *rolloutCall) bool { return c.id == p.CallID })
		}
	})
	return turns, err
}

// resumeCut resumes the thread of a turn that continues, with the policies that the turn had, as
// far as the configuration allows no less.
func (e *Engine) resumeCut(ctx context.Context, saved engine.Saved, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	grant, model, err := lastPolicies(saved.File)
	if err != nil {
		return nil, err
	}
	if grant == nil {
		return nil, &engine.RefusedError{Err: errors.New("the sandbox of the turn is not known, so it is not continued")}
	}
	cfg.Model = cmp.Or(cfg.Model, model)
	deadline := time.Now().Add(writerLimit)
	for {
		conv, err := e.reopen(ctx, saved, cfg, host)
		if err == nil || !errors.Is(err, errWriter) || time.Now().After(deadline) {
			return conv, err
		}
		select {
		case <-time.After(writerPause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// goesOn runs a turn that continues one whose server was killed.
func (c *conversation) goesOn(ctx context.Context, in protocol.TurnInput) error {
	failed := func(err error) error { return c.run(ctx, func(context.Context, *turn) error { return err }, nil) }
	last, err := c.cutTurn(ctx, in.Key)
	if err != nil {
		return failed(err)
	}
	turns, err := rolloutTurns(c.path, in.Key)
	if err != nil {
		return failed(err)
	}
	var open []cut.Call
	was := &rolloutTurn{}
	for _, t := range turns {
		if t.id == last.ID {
			was, t.own = t, true
		}
		if t.own {
			for _, call := range t.open {
				open = append(open, call.Call)
			}
		}
	}
	in.Items = cut.Message(open, in.Continue) // the last turn may have ended in a server that was killed before it could tell of them
	switch {
	case was.done: // just before its server ended
		c.host.Emit(protocol.TaskStarted{})
		if was.answer != nil {
			c.host.Emit(protocol.AgentMessage{Message: *was.answer})
		}
		c.host.Emit(protocol.TaskComplete{LastAgentMessage: was.answer})
		return nil
	case last.Status == apptypes.TurnStatusInterrupted:
	case last.Error != nil && last.Error.Message != "":
		return failed(errors.New(last.Error.Message))
	default:
		return failed(fmt.Errorf("the server ended while this turn ran, and Codex says that it is %q; codex-reply continues the conversation", last.Status))
	}
	return c.run(ctx, func(ctx context.Context, r *turn) error {
		c.host.Emit(cut.Event())
		return c.start(ctx, r, in)
	}, nil)
}

// cutTurn returns the last turn of the thread, which the message with a key began. Turns after it without a
// message do not count: a server was killed as soon as it had begun to continue.
func (c *conversation) cutTurn(ctx context.Context, key string) (*apptypes.Turn, error) {
	ch, err := c.engine.child(ctx)
	if err != nil {
		return nil, err
	}
	n := 0
	for turn, err := range ch.turnsOf(ctx, c.id) {
		if err != nil {
			return nil, fmt.Errorf("the server ended while this turn ran, and Codex does not say how far it came: %w", err)
		}
		own := slices.ContainsFunc(turn.Items, func(raw stdjson.RawMessage) bool {
			var m apptypes.UserMessage
			return json.Unmarshal(raw, &m) == nil && m.ClientID == key
		})
		switch {
		case own && n > 0:
			return nil, errors.New("the server ended while this turn ran, and the conversation was continued before this turn could be")
		case own:
			if turn.Error != nil {
				turn.Error.Message = ch.redact(turn.Error.Message)
			}
			return turn, nil
		case len(turn.Items) > 0 || turn.Status != apptypes.TurnStatusInterrupted:
			n++
		}
	}
	if c.engine.options.Store != nil {
		return nil, errTurnLost
	}
	return nil, errors.New("the server ended before this turn began: nothing of it ran, and its message is not in the conversation; send it again")
}

// maxRolloutPart is how much of the end of a rollout is read, in bytes.
const maxRolloutPart = 64 << 20

// rolloutCall is a call of the model.
type rolloutCall struct {
	id string
	cut.Call
}

// rolloutLine is a line of a rollout, as far as it is read.
type rolloutLine struct {
	Type    protocol.RolloutType `json:"type"`
	Payload struct {
		Type      string         `json:"type"`
		CallID    string         `json:"call_id"`
		Name      string         `json:"name"`
		Arguments string         `json:"arguments"`
		Input     jsontext.Value `json:"input"`
		Output    jsontext.Value `json:"output"`
		TurnID    string         `json:"turn_id"`
		Answer    *string        `json:"last_agent_message"`
		Item      struct {
			ClientID string `json:"client_id"`
		} `json:"item"`
		// The policies of a turn.
		Cwd     string         `json:"cwd"`
		Model   string         `json:"model"`
		Policy  jsontext.Value `json:"approval_policy"`
		Sandbox struct {
			Type     protocol.SandboxMode `json:"type"`
			Roots    []string             `json:"writable_roots"`
			Network  jsontext.Value       `json:"network_access"`
			NoTmp    bool                 `json:"exclude_slash_tmp"`
			NoTmpdir bool                 `json:"exclude_tmpdir_env_var"`
		} `json:"sandbox_policy"`
	} `json:"payload"`
}

// lastLines calls add with each line in the last part of a rollout.
func lastLines(path string, add func(line []byte)) error {
	f, err := safefile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.SeekTail(maxRolloutPart); err != nil {
		return err
	}
	for in := bufio.NewReader(io.LimitReader(f, maxRolloutPart)); ; {
		line, err := in.ReadBytes('\n')
		if err != nil { // the last line may not be whole
			return nil
		}
		add(line)
	}
}
