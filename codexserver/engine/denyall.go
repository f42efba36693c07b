package engine

import (
	"context"
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
)

// DenyAll is the half of a [Host] that answers questions: it denies all of them. Embed it
// in a host that answers only some of them, or none.
type DenyAll struct{}

// Ask implements [Host].
func (DenyAll) Ask(_ context.Context, s approval.Subject) elicit.Outcome {
	return s.Question("", "").ReadError(elicit.ErrUnsupported, nil)
}

// Elicit implements [Host].
func (DenyAll) Elicit(context.Context, *approval.Foreign) (json.RawMessage, error) {
	return nil, elicit.ErrUnsupported
}
