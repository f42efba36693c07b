package appserver

import (
	"bufio"
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
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

// cutRollout is what the rollout of a cut turn says.
type cutRollout struct {
	now     *box.Grant // of the last turn
	model   string
	ends    []rolloutEnd
	pending []*rolloutCall // calls of the last turn, and of the turns that it continues, without a result
	before  []*rolloutCall // those of the last turn before that had any
	done    bool           // the last turn completed
	empty   []string       // the ids of turns that are left out
}

// readCut reads the end of a rollout, without the turns with the ids in empty.
func readCut(path string, empty ...string) (was cutRollout, err error) {
	was.empty = empty
	err = lastLines(path, was.add)
	return was, err
}

// add reads a line.
func (was *cutRollout) add(line []byte) {
	var l rolloutLine
	if json.Unmarshal(line, &l, jsontext.AllowInvalidUTF8(true)) != nil {
		if bytes.Contains(line, []byte(`"`+protocol.RolloutTurnContext+`"`)) {
			was.now = nil // it may have other policies than those before
		}
		return
	}
	p := &l.Payload
	switch end, call := l.end(), l.call(); {
	case l.Type == protocol.RolloutTurnContext:
		if box.Width(p.Sandbox.Type) < 0 {
			was.now = nil // which cannot be compared
			return
		}
		was.model = p.Model
		was.now = &box.Grant{Cwd: p.Cwd, Policy: policyWord(policyOf([]byte(p.Policy))),
			Sandbox: protocol.SandboxPolicy{
				Mode: p.Sandbox.Type, WritableRoots: p.Sandbox.Roots, NetworkAccess: string(p.Sandbox.Network) == "true",
				ExcludeSlashTmp: p.Sandbox.NoTmp, ExcludeTmpdirEnvVar: p.Sandbox.NoTmpdir,
			}}
	case l.Type == protocol.RolloutEventMsg && p.Type == "task_started":
		if slices.Contains(was.empty, p.TurnID) {
			return
		}
		if len(was.pending) > 0 || was.done {
			was.before = was.pending
		}
		was.pending, was.done = nil, false
	case l.continues():
		was.before, was.pending = nil, append(was.before, was.pending...)
	case end != nil && end.completed:
		was.ends, was.done = append(was.ends, *end), true
	case call != nil:
		was.pending = append(was.pending, call)
	case (p.Type == "function_call_output" || p.Type == "custom_tool_call_output") && !bytes.HasSuffix(p.Output, []byte(`aborted by user"`)):
		was.pending = slices.DeleteFunc(was.pending, func(c *rolloutCall) bool { return c.id == p.CallID })
	}
}

// resumeCut resumes the thread of a turn that continues, with the policies that the turn had, as
// far as the configuration allows no less.
func (e *Engine) resumeCut(ctx context.Context, saved engine.Saved, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	was, err := readCut(saved.File)
	if err != nil {
		return nil, err
	}
	if was.now == nil {
		return nil, &engine.RefusedError{Err: errors.New("the sandbox of the turn is not known, so it is not continued")}
	}
	if cfg.Model == "" {
		cfg.Model = was.model
	}
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
	failed := func(err error) error {
		c.host.Emit(protocol.TaskStarted{})
		return c.failed(ctx, err)
	}
	last, empty, err := c.cutTurn(ctx, in.Key)
	if err != nil {
		return failed(err)
	}
	was, err := readCut(c.path, empty...)
	if err != nil {
		return failed(err)
	}
	if i := slices.IndexFunc(was.ends, func(e rolloutEnd) bool { return e.turn == last.ID }); i >= 0 {
		return c.endAgain(was.ends[i].answer)
	}
	if last.Status != apptypes.TurnStatusInterrupted {
		return failed(errors.New(failureOf(last)))
	}
	var open []cut.Call
	for _, call := range was.pending {
		open = append(open, cut.Of(call.name, call.arguments))
	}
	in.Items = cut.Message(open, in.Continue)
	return c.run(ctx, func(ctx context.Context) (*turn, error) {
		c.host.Emit(cut.Event())
		return c.start(ctx, in)
	}, nil)
}

// cutTurn returns the last turn of the thread, which the message with a key began. Empty are the ids of
// turns after it without a message: a server was killed as soon as it had begun to continue.
func (c *conversation) cutTurn(ctx context.Context, key string) (_ *apptypes.Turn, empty []string, err error) {
	ch, err := c.engine.child(ctx)
	if err != nil {
		return nil, nil, err
	}
	n := 0
	for turn, err := range ch.turnsOf(ctx, c.id) {
		if err != nil {
			return nil, nil, fmt.Errorf("the server ended while this turn ran, and Codex does not say how far it came: %w", err)
		}
		own := slices.ContainsFunc(turn.Items, func(raw stdjson.RawMessage) bool { return clientOf(raw) == key })
		switch {
		case own && n > 0:
			return nil, nil, errors.New("the server ended while this turn ran, and the conversation was continued before this turn could be")
		case own:
			if turn.Error != nil {
				turn.Error.Message = ch.redact(turn.Error.Message)
			}
			return turn, empty, nil
		case len(turn.Items) == 0 && turn.Status == apptypes.TurnStatusInterrupted:
			empty = append(empty, turn.ID)
		default:
			n++
		}
	}
	if c.engine.options.Store != nil {
		return nil, nil, errTurnLost
	}
	return nil, nil, errors.New("the server ended before this turn began: nothing of it ran, and its message is not in the conversation; send it again")
}

// endAgain reports the end of a turn that completed just before its server ended.
func (c *conversation) endAgain(answer *string) error {
	c.host.Emit(protocol.TaskStarted{})
	if answer != nil {
		c.host.Emit(protocol.AgentMessage{Message: *answer})
	}
	c.host.Emit(protocol.TaskComplete{LastAgentMessage: answer})
	return nil
}

// failureOf returns why a turn that neither completed nor was interrupted cannot be continued.
func failureOf(t *apptypes.Turn) string {
	if t.Error != nil && t.Error.Message != "" {
		return t.Error.Message
	}
	return fmt.Sprintf("the server ended while this turn ran, and Codex says that it is %q; codex-reply continues the conversation", t.Status)
}

// maxRolloutPart is how much of the end of a rollout is read, in bytes.
const maxRolloutPart = 64 << 20

// rolloutCall is a call of the model.
type rolloutCall struct {
	id, name, arguments string
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
		Role      string         `json:"role"`
		Content   jsontext.Value `json:"content"`
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

// end returns the end of a turn, or nil.
func (l *rolloutLine) end() *rolloutEnd {
	completed := l.Payload.Type == "task_complete"
	if l.Type != protocol.RolloutEventMsg || !completed && l.Payload.Type != "turn_aborted" {
		return nil
	}
	return &rolloutEnd{l.Payload.TurnID, completed, l.Payload.Answer}
}

// continues reports whether the line is the message that continues the turn before.
func (l *rolloutLine) continues() bool {
	var content []struct {
		Text string `json:"text"`
	}
	return l.Payload.Role == "user" && json.Unmarshal(l.Payload.Content, &content, jsontext.AllowInvalidUTF8(true)) == nil &&
		len(content) > 0 && strings.HasPrefix(content[0].Text, cut.Head)
}

// call returns a call of the model, or nil.
func (l *rolloutLine) call() *rolloutCall {
	p := &l.Payload
	if p.Type != "function_call" && p.Type != "custom_tool_call" {
		return nil
	}
	var input string
	_ = json.Unmarshal(p.Input, &input, jsontext.AllowInvalidUTF8(true)) // "" if it is not text
	return &rolloutCall{id: p.CallID, name: p.Name, arguments: p.Arguments + input}
}

// rolloutEnd is the end of a turn.
type rolloutEnd struct {
	turn      string
	completed bool
	answer    *string
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
