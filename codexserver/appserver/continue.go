package appserver

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
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
// because its task does not say how: see mcptool.Job.Keepsake.

const (
	// maxContinued is how many processes may continue a turn.
	maxContinued = 5
	// writerLimit is how long a thread may still be that of the app-server that is being killed.
	writerLimit = 5 * time.Second
	writerPause = 50 * time.Millisecond
	// continued is the message to the model, in which the server speaks.
	continued = `<interrupted>
The server that ran your last turn has ended, and another one continues the turn here. A call without a result, or whose result is "aborted" or "aborted by user", may have run or not, in whole or in part, and its processes were killed. The user did not interrupt the turn, even if a message says so. No call was repeated. Find out what such a call has done before you repeat it. Then continue with the task.
</interrupted>`
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
	now     *sandbox.Grant // of the last turn
	model   string
	ends    []rolloutEnd
	pending []*rolloutCall // calls of the last turn without a result
}

// readCut reads the end of a rollout.
func readCut(path string) (cut cutRollout, err error) {
	err = lastLines(path, cut.add)
	return cut, err
}

// add reads a line.
func (cut *cutRollout) add(line []byte) {
	var l rolloutLine
	if json.Unmarshal(line, &l, jsontext.AllowInvalidUTF8(true)) != nil {
		if bytes.Contains(line, []byte(`"`+protocol.RolloutTurnContext+`"`)) {
			cut.now = nil // it may have other policies than those before
		}
		return
	}
	p := &l.Payload
	switch end, call := l.end(), l.call(); {
	case l.Type == protocol.RolloutTurnContext:
		if sandbox.Width(p.Sandbox.Type) < 0 {
			cut.now = nil // which cannot be compared
			return
		}
		cut.model = p.Model
		cut.now = &sandbox.Grant{Cwd: p.Cwd, Policy: policyWord(policyOf([]byte(p.Policy))),
			Sandbox: protocol.SandboxPolicy{
				Mode: p.Sandbox.Type, WritableRoots: p.Sandbox.Roots, NetworkAccess: string(p.Sandbox.Network) == "true",
				ExcludeSlashTmp: p.Sandbox.NoTmp, ExcludeTmpdirEnvVar: p.Sandbox.NoTmpdir,
			}}
	case l.Type == protocol.RolloutEventMsg && p.Type == "task_started":
		cut.pending = nil
	case end != nil && end.completed:
		cut.ends = append(cut.ends, *end)
	case call != nil:
		cut.pending = append(cut.pending, call)
	case (p.Type == "function_call_output" || p.Type == "custom_tool_call_output") && !bytes.HasSuffix(p.Output, []byte(`aborted by user"`)):
		cut.pending = slices.DeleteFunc(cut.pending, func(c *rolloutCall) bool { return c.id == p.CallID })
	}
}

// resumeCut resumes the thread of a turn that continues, with the policies that the turn had, as
// far as the configuration allows no less.
func (e *Engine) resumeCut(ctx context.Context, rolloutPath string, cfg protocol.Config, host engine.Host) (engine.Conversation, error) {
	cut, err := readCut(rolloutPath)
	if err != nil {
		return nil, err
	}
	if cut.now == nil {
		return nil, &engine.RefusedError{Err: errors.New("the sandbox of the turn is not known, so it is not continued")}
	}
	if cfg.Model == "" {
		cfg.Model = cut.model
	}
	deadline := time.Now().Add(writerLimit)
	for {
		conv, err := e.reopen(ctx, rolloutPath, cfg, host)
		if err == nil || !strings.Contains(err.Error(), "active writer") || time.Now().After(deadline) {
			return conv, err
		}
		select {
		case <-time.After(writerPause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Continue implements [engine.Continuable].
func (c *conversation) Continue(ctx context.Context, in protocol.TurnInput, note func(words string)) error {
	failed := func(err error) error {
		c.host.Emit(protocol.TaskStarted{})
		return c.failed(ctx, err)
	}
	last, before, err := c.cutTurn(ctx, in.Key)
	if err != nil {
		return failed(err)
	}
	cut, err := readCut(c.path)
	if err != nil {
		return failed(err)
	}
	if i := slices.IndexFunc(cut.ends, func(e rolloutEnd) bool { return e.turn == last.ID }); i >= 0 {
		return c.endAgain(cut.ends[i].answer)
	}
	if last.Status != apptypes.TurnStatusInterrupted {
		return failed(errors.New(redact(failureOf(last))))
	}
	if before >= maxContinued {
		return failed(fmt.Errorf("the server ended %d times while this turn ran, so it is not continued again; codex-reply continues the conversation", before+1))
	}
	if note != nil {
		for _, call := range cut.pending {
			shown := call.name
			if argv := call.command(); argv != nil {
				shown = elicit.ShowCommand(argv)
			}
			note("The server ended while this call was open: " + elicit.OneLine(shown, 200) + ". It may have run or not, and was not run again.")
		}
	}
	in.Items = protocol.TextInput(continued)
	return c.run(ctx, func(ctx context.Context) (*turn, error) {
		c.host.Emit(protocol.BackgroundEvent{Message: fmt.Sprintf("the server that ran this turn ended; process %d continues it in another turn of Codex", os.Getpid())})
		return c.start(ctx, in)
	}, nil)
}

// cutTurn returns the last turn of the thread, which the message with a key began, and how many
// turns before it continued the same message.
func (c *conversation) cutTurn(ctx context.Context, key string) (last *apptypes.Turn, before int, err error) {
	ch, err := c.engine.child(ctx)
	if err != nil {
		return nil, 0, err
	}
	n := 0
	for turn, err := range ch.turnsOf(ctx, c.id) {
		if err != nil {
			return nil, 0, fmt.Errorf("the server ended while this turn ran, and Codex does not say how far it came: %w", err)
		}
		own := slices.ContainsFunc(turn.Items, func(raw stdjson.RawMessage) bool { return clientOf(raw) == key })
		switch {
		case own && last == nil && n > 0:
			return nil, 0, errors.New("the server ended while this turn ran, and the conversation was continued before this turn could be")
		case own && last == nil:
			last = turn
		case own:
			before++
		case last != nil:
			return last, before, nil
		}
		n++
	}
	switch {
	case last == nil && c.engine.options.Store != nil:
		err = errTurnLost
	case last == nil:
		err = errors.New("the server ended before this turn began: nothing of it ran, and its message is not in the conversation; send it again")
	}
	return last, before, err
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
