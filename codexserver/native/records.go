package native

import (
	"context"
	"fmt"
	"os"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json/jsontext"
)

// The records of a turn say in the conversation's file what a later process must know to
// continue it: each is written before what it announces, and after what it reports. See
// continue.go.

// write writes a record of the turn, unless no other process would continue the turn.
func (t *turn) write(r rollout.Record) {
	if t.key != "" {
		t.conv.checkWrite(t.conv.saved.file.Record(r, false))
	}
}

// begins records the beginning of the turn.
func (t *turn) begins() {
	t.write(rollout.Record{
		Kind: rollout.TurnBegins, Turn: t.key, PID: os.Getpid(), Mark: t.conv.engine.processes.Mark(),
		Used: t.conv.meter.total(), MaxTokens: t.budget.most, Schema: jsontext.Value(t.form.schema()),
	})
}

// ends records the end of the turn, before anybody is told. It fails if there is a store and it
// does not have the end: another process may end the turn otherwise.
func (t *turn) ends(end *rollout.End) error {
	t.write(rollout.Record{Kind: rollout.TurnEnds, Turn: t.key, End: end})
	if t.conv.engine.options.Store == nil {
		return nil
	}
	err := t.conv.saved.file.Sync()
	if t.conv.checkWrite(err); err != nil {
		return fmt.Errorf("the turn has ended, and its end is not in the store: %w", err)
	}
	return nil
}

// act is called before a call does anything. It adds the response to the history, and
// records what begins. A turn that another process may continue does nothing that it cannot
// record, because that process could do it again.
func (t *turn) act(a tool.Act) error {
	t.commit()
	if t.key == "" {
		t.conv.checkWrite(t.conv.saved.file.Sync())
	}
	if err := t.conv.saved.kept(); err != nil {
		return err
	}
	return t.note(a)
}

// note records what a call begins.
func (t *turn) note(a tool.Act) error {
	if a.Call == "" || t.key == "" {
		return nil
	}
	r := rollout.Record{Kind: rollout.CallBegins, Call: a.Call, Command: a.Command, Cwd: a.Cwd, Tool: a.Tool}
	for _, w := range a.Writes {
		r.Files = append(r.Files, rollout.File(w))
	}
	err := t.conv.saved.file.Record(r, true)
	t.conv.checkWrite(err)
	if err != nil {
		return fmt.Errorf("it cannot be recorded before it begins: %w", err)
	}
	return nil
}

// asks records a question about a call.
func (t *turn) asks(call string) {
	if t.key == "" {
		return
	}
	t.commit()
	t.write(rollout.Record{Kind: rollout.CallAsks, Call: call})
	t.conv.checkWrite(t.conv.saved.file.Sync())
}

// decided records the decision about a call, and returns it. The end of the turn is none.
func (t *turn) decided(ctx context.Context, call, what string, out elicit.Outcome) elicit.Outcome {
	r := rollout.Record{Kind: rollout.CallApproved, Call: call}
	switch {
	case ctx.Err() != nil, t.key == "":
		return out
	case !out.Decision.Approves():
		r.Kind, r.Aborts = rollout.CallRefused, out.Decision == elicit.Abort
		r.Output = fmt.Sprintf("%s: %s", what, out.ForModel())
	}
	t.write(r)
	return out
}

// writesOf returns what a patch of a record writes.
func writesOf(files []rollout.File) (all []patch.Write) {
	for _, f := range files {
		all = append(all, patch.Write(f))
	}
	return all
}

// narrow makes the policies of a turn that continues no looser than those that it had, and
// than those of the configuration, which restorePolicies has set.
func (c *conversation) narrow(had *protocol.TurnContext) {
	c.continues = true
	now := &c.now.SandboxPolicy
	if had == nil || now.Mode != had.SandboxPolicy.Mode || now.Mode != protocol.SandboxWorkspaceWrite {
		return
	}
	was := had.SandboxPolicy
	now.NetworkAccess = now.NetworkAccess && was.NetworkAccess
	now.ExcludeSlashTmp = now.ExcludeSlashTmp || was.ExcludeSlashTmp
	now.ExcludeTmpdirEnvVar = now.ExcludeTmpdirEnvVar || was.ExcludeTmpdirEnvVar
	var roots []string
	for _, root := range now.WritableRoots {
		for _, other := range was.WritableRoots {
			if root == other {
				roots = append(roots, root)
			}
		}
	}
	now.WritableRoots = roots
}
