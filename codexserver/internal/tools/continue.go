package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/internal/turnlog"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A turn of a task or in the background can outlive its process: [Job.Keepsake] is what
// another one needs to continue it, with [Table.Reopen].

// Orphan is a turn whose process has ended.
type Orphan struct {
	// Thread is the id of its thread.
	Thread string
	// Keepsake is the last [Job.Keepsake] of its job, and Did the last [Job.Did].
	Keepsake, Did jsontext.Value
	// Ended is how many servers have ended while the turn worked.
	Ended int
}

// maxContinued is how many servers may end while a turn works. A turn that ends its server each time, such as
// by its memory, is given up.
const maxContinued = 5

// keepsake is what continues a turn, in the process that began it and in another one.
type keepsake struct {
	Key    string               `json:"key"`            // see [protocol.TurnInput]; "" if no other process continues the turn
	Began  time.Time            `json:"began,omitzero"` // by another process
	Used   *protocol.TokenUsage `json:"used,omitzero"`  // what the thread had used
	Budget *budget              `json:",embed"`
	Schema jsontext.Value       `json:"schema,omitzero"` // of the answer

	Worktree *protocol.Worktree `json:"worktree,omitzero"` // that the call made for its thread

	Ended int `json:"-"` // see [Orphan]
}

// worktree returns the worktree for the result, or nil.
func (k *keepsake) worktree() *protocol.Worktree {
	if k.Worktree == nil {
		return nil
	}
	return &protocol.Worktree{Path: turnlog.Show(k.Worktree.Path, maxTree), Branch: turnlog.Show(k.Worktree.Branch, maxName)}
}

// Continues reports whether turns of processes that have ended are continued.
func (t *Table) Continues() bool {
	return t.options.Continues && engine.TraitsOf(t.engine).CanContinue != nil
}

// CanContinue returns why no turn can be continued now, or nil.
func (t *Table) CanContinue(ctx context.Context) error {
	if !t.Continues() {
		return errors.New("this server does not continue turns of others")
	}
	return engine.TraitsOf(t.engine).CanContinue(ctx)
}

// Keepsake returns what another process needs to continue the turn, or nil if none does, such
// as for a turn that a person has aborted.
func (j *Job) Keepsake() jsontext.Value {
	k := j.kept
	k.Began, k.Used = j.began()
	if k.Key == "" || j.log.Stopped() {
		return nil
	}
	raw, err := json.Marshal(k, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil // such as a budget that is not a number
	}
	return raw
}

// began returns when the turn began, in the first process that ran it, and what its thread had used
// before. It returns zeros before.
func (j *Job) began() (at time.Time, used *protocol.TokenUsage) {
	if !j.kept.Began.IsZero() {
		return j.kept.Began, j.kept.Used
	}
	return j.log.Began()
}

// Continued is a turn that continues here.
type Continued struct {
	call   *call
	job    *Job
	thread *thread.Thread
}

// Reopen opens the thread of a turn to continue it. If it fails, another process may still
// continue the turn.
func (t *Table) Reopen(ctx context.Context, c *Call, cut Orphan) (*Continued, error) {
	var turn keepsake
	if err := json.Unmarshal(cut.Keepsake, &turn); err != nil {
		return nil, fmt.Errorf("continuing a turn: %w", err)
	}
	if turn.Key == "" {
		return nil, errors.New("continuing a turn: it has no key")
	}
	if turn.Began.IsZero() {
		turn.Began = time.Now()
	}
	t.sweeper.begin(c.Jobs) // after what was killed
	own := &call{Call: c, table: t}
	leave, err := t.turns.enter()
	if err != nil {
		return nil, err
	}
	own.leave = leave
	j := own.newJob(c.Awaited)
	turn.Ended = cut.Ended
	if j.kept = turn; turn.Schema != nil {
		j.form.schema, err = outputschema.Compile([]byte(turn.Schema))
	}
	before := &protocol.TurnResult{}
	if json.Unmarshal(cut.Did, before) != nil {
		before = &protocol.TurnResult{}
	}
	j.log.Continue(before)
	var th *thread.Thread
	if err == nil {
		th, err = t.reviveAs(ctx, own, cut.Thread, j, func() protocol.Config { return protocol.Config{Continues: true} })
	}
	if err != nil {
		leave()
		return nil, err
	}
	return &Continued{own, j, th}, nil
}

// Run runs the rest of the turn and returns its result. In the background it returns at
// once, and codex-wait has the result.
func (c *Continued) Run(ctx context.Context, background bool) *mcptypes.CallToolResult {
	r := c.call.run(ctx, c.job, c.thread, protocol.TurnInput{OutputSchema: []byte(c.job.kept.Schema), MaxTokens: c.job.kept.Budget.tokens()}, background)
	if c.call.leave != nil {
		c.call.leave()
	}
	return r
}

// Changed returns a channel that is closed when there is news of the turn, see
// [turnlog.Turn.Changed], and one that is closed when there is a result.
func (j *Job) Changed() (news, ended <-chan struct{}) { return j.log.Changed(), j.done }
