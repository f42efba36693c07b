package engine

import (
	"context"
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// DenyAll is the half of a [Host] that answers questions: it denies all of them. Embed it
// in a host that answers only some of them, or none.
type DenyAll struct{}

// ApproveExec implements [Host].
func (DenyAll) ApproveExec(context.Context, protocol.ExecApprovalRequest) elicit.Outcome {
	return elicit.ReadError(elicit.ErrUnsupported, nil)
}

// ApproveHost implements [Host].
func (DenyAll) ApproveHost(context.Context, protocol.HostRequest) elicit.Outcome {
	return elicit.ReadError(elicit.ErrUnsupported, nil)
}

// ApprovePatch implements [Host].
func (DenyAll) ApprovePatch(context.Context, protocol.PatchApprovalRequest) elicit.Outcome {
	return elicit.ReadError(elicit.ErrUnsupported, nil)
}

// Approve implements [Host].
func (DenyAll) Approve(_ context.Context, q *elicit.Question) elicit.Outcome {
	return q.ReadError(elicit.ErrUnsupported, nil)
}

// Overrule implements [Host].
func (DenyAll) Overrule(context.Context, protocol.OverruleRequest) elicit.Outcome {
	return elicit.ReadError(elicit.ErrUnsupported, nil)
}

// Elicit implements [Host].
func (DenyAll) Elicit(context.Context, *approval.Foreign) (json.RawMessage, error) {
	return nil, elicit.ErrUnsupported
}
