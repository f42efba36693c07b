package tool

import (
	"context"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
)

// Check runs a check as the shell tool runs a line. An error ends the turn, as that of [Turn.Call].
func (t *Turn) Check(ctx context.Context, c engine.Check) (out engine.Checked, err error) {
	ms := float64(c.Limit.Milliseconds())
	r, err := t.attempt(c.ID, shellArguments{Command: append(slices.Clone(t.box.line), c.Line), TimeoutMS: &ms})
	if err != nil {
		return engine.Checked{Why: err.Error()}, nil
	}
	r.ended = new(ended)
	refusal, err := r.decide(ctx)
	res := r.ended.Result
	switch {
	case err != nil:
		return out, err
	case res == nil:
		return engine.Checked{Why: refusal}, nil
	}
	out = engine.Checked{ExitCode: &res.ExitCode, Output: res.Formatted()}
	switch {
	case r.ended.stopped:
		out.Why = box.DenialWords(box.Denial(t.SandboxPolicy.NetworkAccess, r.dir, *res), r.dir)
	case res.ExitCode < 0:
		out.ExitCode, out.Why = nil, "it did not run to its end"
	}
	return out, nil
}
