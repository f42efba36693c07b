package mcp

import (
	"context"
	"errors"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// maxOver is how many questions are remembered that had no answer.
const maxOver = 64

// over is a question that ended without an answer of the client.
type over struct {
	request *approval.Request
	expired bool // it had no answer in time; another was withdrawn
}

// ends remembers a question that the client may still answer. Ctx is that of the question.
func (ss *LegacySession) ends(ctx context.Context, r *approval.Request, out elicit.Outcome) {
	expired := out.Reason == elicit.ReasonTimeout || errors.Is(ctx.Err(), context.DeadlineExceeded)
	if out.Reason != elicit.ReasonInterrupted && !expired {
		return
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.over = append(ss.over, over{r, expired})
	ss.over = ss.over[max(0, len(ss.over)-maxOver):]
}

// Problem is the hook of the session's peer: an answer that comes after the limit of its question is said
// to the caller of the turn.
func (ss *LegacySession) Problem(err error, _ []byte) {
	if !errors.Is(err, jsonrpc.ErrNoCall) {
		return
	}
	ss.mu.Lock()
	all := slices.Clone(ss.over)
	if len(all) == 1 {
		ss.over = nil
	}
	ss.mu.Unlock()
	for _, one := range all {
		if one.expired {
			ss.client.turns.AnsweredLate(one.request, len(all) > 1)
		}
	}
}
