package appserver

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/internal/cut"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/threadfile"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// The form of an answer is a turn of Codex with the schema, in which nothing may run: it is read-only and asks nobody, and what
// begins in it all the same ends it. Codex keeps these policies and the effort for later turns, and in its file. So each later
// turn has the conversation's own, and until then they are kept in the file of its choices, for a process that resumes it.

// formGrant is what a turn for a form may do.
var formGrant = decide.Grant{
	Policy: protocol.ApprovalNever, Sandbox: protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly},
}

// errForm is why a question of a turn for a form is declined.
var errForm = errors.New("the turn is for the form of an answer alone")

// Form implements [engine.Former].
func (c *conversation) Form(ctx context.Context, in protocol.TurnInput) error {
	return c.run(ctx, in.Again, func(ctx context.Context, r *turn) error {
		r.form = true
		items, err := inputItems(in.Items)
		if err != nil {
			return err
		}
		p := apptypes.TurnParams{
			ThreadID: c.id, Input: items, OutputSchema: in.OutputSchema,
			SandboxPolicy: sandboxOf(formGrant.Sandbox), ApprovalPolicy: policyParam(formGrant.Policy),
		}
		if in.Key != "" {
			p.ClientUserMessageID = cut.FormKey(in.Key)
		}
		c.effort = cmp.Or(c.effort, c.usual)
		if p.Effort, err = c.formEffort(ctx); err != nil {
			return err
		}
		if !c.settings.readOnly { // nobody resumes a review
			now := &c.settings.now
			c.chosen.Formed = &threadfile.Formed{Policy: now.Policy, Sandbox: now.Sandbox, Effort: c.effort}
			if err := c.choices.Put(c.chosen); err != nil {
				return err
			}
		}
		return c.begins(ctx, r, &p)
	})
}

// formEffort returns the effort of a turn for a form: low if the model has it and the conversation a higher one, which the next
// turn sets again.
func (c *conversation) formEffort(ctx context.Context) (string, error) {
	const low = protocol.EffortLow
	if slices.Contains([]protocol.ReasoningEffort{"", "none", protocol.EffortMinimal, low}, c.effort) {
		return string(c.effort), nil
	}
	ch, err := c.engine.child(ctx)
	if err != nil {
		return "", err
	}
	var r apptypes.ModelsReply
	if err := ch.control(ctx, apptypes.CallModelList, apptypes.ModelsParams{}, &r); err != nil {
		ch.log.Debug("codex: the efforts of a model are unknown", "model", c.model, "error", err)
	}
	has := apptypes.ModelEffort{ReasoningEffort: string(low)}
	for _, m := range r.Data {
		if m.Model == c.model && slices.Contains(m.SupportedReasoningEfforts, has) {
			return string(low), nil
		}
	}
	return string(c.effort), nil
}

// formless records that the last turn in Codex's file is none for a form any more.
func (c *conversation) formless() {
	r := c.running.Load()
	if c.chosen.Formed == nil || r == nil || r.app == nil || r.app.ID() == "" {
		return
	}
	c.chosen.Formed = nil
	if err := c.choices.Put(c.chosen); err != nil { // what it says counts no longer, either
		c.engine.options.Logger.Warn("codex: what a conversation chose is not kept", "thread", c.id, "error", err)
	}
}

// unform gives a conversation what it had before a turn for a form, if that is the last one in Codex's file.
func (e *earlier) unform() *threadfile.Formed {
	if e.kept == nil || e.kept.Formed == nil || e.had == nil {
		return nil
	}
	if e.had.Policy != formGrant.Policy || e.had.Sandbox.Mode != formGrant.Sandbox.Mode {
		return nil
	}
	e.had.Policy, e.had.Sandbox = e.kept.Formed.Policy, e.kept.Formed.Sandbox
	return e.kept.Formed
}

// formItems are the types of items that a turn for a form may have.
var formItems = []string{
	apptypes.ThreadItemAgentMessage, apptypes.ThreadItemReasoning, apptypes.ThreadItemUserMessage,
	apptypes.ThreadItemContextCompaction, "hookPrompt", "plan",
}

// keepsToForm ends a turn for a form in which something else begins. The lock is held.
func (r *turn) keepsToForm(n *apptypes.Note) {
	if !r.form || n.Item == nil || slices.Contains(formItems, n.Item.Type) {
		return
	}
	what := n.Item.Type
	if slices.Contains(acts, what) {
		what = words(subject(n.Item))
	}
	r.abandon(errors.New("Codex began " + what + " although it was asked for the form of its answer alone"))
}
