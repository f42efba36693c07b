package thread

import (
	"cmp"
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/admit"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
)

// grant is what a person approved for a thread.
type grant struct{ principal, thread string }

// keeps returns a function for [protocol.Config.Keep]: a resumed thread keeps what needs no question,
// and what a person approved for it on this server.
func (s *Share) keeps(ctx context.Context, c admit.Caller, id string) func(protocol.Access) bool {
	return func(a protocol.Access) bool {
		return s.needs(ctx, c.Resuming(), id, a).IsZero() && !c.Trusted()
	}
}

// needs returns what of an access of a thread no person has approved, zero if nothing.
func (s *Share) needs(ctx context.Context, c admit.Caller, id string, a protocol.Access) protocol.Access {
	more := c.Beyond(ctx, a)
	if had, ok := s.table.grants.Load(grant{s.principal, CanonicalID(id)}); ok && had.(protocol.Access).Equal(more) {
		more = protocol.Access{}
	}
	return more
}

// extends sets what the thread asks for before its first turn. It fails if the settings give it to
// nobody.
func (s *Share) extends(ctx context.Context, t *Thread, c admit.Caller, cfg *protocol.Config) error {
	if c.Trusted() {
		return nil
	}
	has := t.Info().Access
	if !t.traits.Confines && admit.Full(cfg) { // which the engine does not report
		has.Folder = cmp.Or(has.Folder, cfg.Cwd)
		has.Mode, has.Policy = protocol.SandboxDangerFullAccess, cfg.ApprovalPolicy
	}
	if has.Mode == protocol.SandboxWorkspaceWrite {
		t.folders = append([]string{has.Folder}, has.Roots...)
	}
	t.full = c.FullAccess()
	t.asks = approval.Access{Access: s.needs(ctx, c, t.ID(), has), Client: c.Client()}
	t.asks.Folder = has.Folder
	if t.full == setting.FullAccessDeny && !t.asks.IsZero() {
		return refusedAccess(t.asks, denies)
	}
	return nil
}

// denies is why a setting refuses what a call asks for.
const denies = `calls.full_access = "deny" refuses it`

// refusedAccess is the error of a call that does not get what it asks for.
func refusedAccess(r approval.Access, why string) error {
	remedy := `leave it out of the call, or let a person set calls.full_access = "allow" in codex-mcp.toml`
	write := r.Mode == protocol.SandboxWorkspaceWrite || r.Mode == "" && len(r.Roots) > 0
	if write && !r.Network && !r.WebSearch && r.Provider == "" {
		remedy = "leave it out of the call, or let a person start the server there (--cd) or name the folder in " +
			"sandbox_workspace_write.writable_roots of config.toml; " +
			`calls.full_access = "allow" in codex-mcp.toml allows everything`
	}
	if len(r.Beside) > 0 {
		remedy = "wait until the other conversation and the programs that it left have ended, " +
			"or call with worktree: true"
	}
	return &engine.RefusedError{Err: fmt.Errorf("nothing was started: the call asks for %s, "+
		"which is more than the configuration of the server gives, and %s; %s", r.Words(), why, remedy)}
}

// admit asks for what the thread may not have without an approval. It returns no error if a person has
// approved it, now or earlier. Leave must then be called at the end of the turn.
func (t *Thread) admit(ctx context.Context) (leave func(), err error) {
	beside, with, entered, err := t.enter()
	if err != nil {
		return nil, t.refuse("nothing was started: it is not known which other turns run: " + err.Error())
	}
	defer func() {
		if err != nil {
			entered()
		}
	}()
	held, asks := t.folders, []approval.Access(nil)
	if !t.asks.IsZero() {
		held, asks = append([]string{t.asks.Folder}, held...), append(asks, t.asks)
	}
	if len(beside) > 0 { // a question of its own, so that a line has room for the other's reach
		access := protocol.Access{Folder: t.asks.Folder, Beside: beside}
		asks = append(asks, approval.Access{Access: access, Client: t.asks.Client})
	}
	folders := run.HoldFolders(held...)
	defer folders.Close()
	if err := t.inPlace(folders); err != nil || len(asks) == 0 {
		return entered, err
	}
	for _, r := range asks {
		if t.full == setting.FullAccessDeny {
			return nil, t.refuse(refusedAccess(r, denies).Error())
		}
		if err := t.request(ctx, r); err != nil {
			return nil, err
		}
	}
	if err := t.inPlace(folders); err != nil {
		return nil, err
	}
	for _, p := range with {
		t.table.grants.Store(p, true)
	}
	if !t.asks.IsZero() {
		t.table.grants.Store(grant{t.about.Principal, CanonicalID(t.ID())}, t.asks.Access)
		t.asks.Access = protocol.Access{Folder: t.asks.Folder}
	}
	return entered, nil
}

// inPlace returns an error if a folder was replaced, also while a person was asked.
func (t *Thread) inPlace(folders *run.Folders) error {
	if replaced := folders.Replaced(); replaced != "" {
		return t.refuse("nothing was started: another folder is in the place of " +
			elicit.ShowCommand([]string{replaced}) + ", in which the conversation may write")
	}
	return nil
}

// request asks a person. It returns an error unless the person approves.
func (t *Thread) request(ctx context.Context, asks approval.Access) error {
	d := t.decide(ctx, asks)
	if d.Decision.Approves() {
		t.attended().Turn.Remark(givenBy(d) + " approved " + asks.Words() + " for this conversation.")
		return nil
	}
	if ctx.Err() != nil {
		t.Emit(protocol.TurnAborted{Reason: protocol.AbortInterrupted})
		return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: context.Cause(ctx)}
	}
	why := d.ForModel()
	if d.Reason == elicit.ReasonDeclined && d.Feedback == "" {
		why = "the approval was declined"
	}
	return t.refuse(refusedAccess(asks, why).Error())
}

// refuse ends a turn that does not begin.
func (t *Thread) refuse(words string) error {
	t.Emit(protocol.Error{Message: words})
	return &engine.TurnError{Message: words}
}

// givenBy says who made a decision, at the beginning of a sentence.
func givenBy(d approval.Decision) string {
	who := "The " + string(d.By)
	if d.By == approval.ByClient && d.Client != "" {
		who += " " + elicit.ShowName(d.Client)
	}
	return who
}
