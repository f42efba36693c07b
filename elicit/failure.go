package elicit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// ErrUnsupported means that the client cannot be asked and nothing was sent. Pass it to
// ReadError if Client.CanAsk returns false.
var ErrUnsupported = errors.New("elicit: the client cannot be asked")

// ReadError reads the failure of an elicitation/create request:
//
//	ErrUnsupported            the client cannot be asked
//	a *jsonrpc.Error          the client answered with an error
//	context.DeadlineExceeded  no answer within Options.Timeout
//	context.Canceled          the turn ended
//	jsonrpc.ErrClosed, io.EOF the client is gone
//	any other                 the request failed; handled as an error answer
//
// The texts of the outcome are about a command; Question.ReadError returns texts that fit
// its question.
func ReadError(err error, o *Options) Outcome { return (&Question{}).ReadError(err, o) }

// ReadError reads the failure of q as the function ReadError does, in words
// that fit q.
func (q *Question) ReadError(err error, o *Options) Outcome {
	opt := o.resolved()
	var answer *jsonrpc.Error
	switch {
	case errors.Is(err, ErrUnsupported):
		asked := "asked for approval"
		if q.isForm() {
			asked = "asked"
		}
		return q.failed(opt, opt.OnUnsupported, Outcome{
			Reason: ReasonUnsupported,
			Detail: "not " + asked + ": the client has no elicitation",
			model:  cmp.Or(opt.Unable, "this MCP client cannot show "+q.request()+"s"),
		})
	case errors.As(err, &answer):
		code := ""
		if answer.Code != 0 { // SDKs send 0 for any error of a program
			code = " (" + strconv.FormatInt(int64(answer.Code), 10) + ")"
		}
		return q.failed(opt, opt.OnError, Outcome{
			Reason: ReasonClientError,
			Detail: "error answer to the " + q.request() + ":" + code + " " + plain.Quote(answer.Message),
			model:  "the client could not show the " + q.request() + code,
		})
	case errors.Is(err, context.DeadlineExceeded):
		return q.failed(opt, opt.OnTimeout, Outcome{
			Reason: ReasonTimeout,
			Detail: "no answer to the " + q.request() + " within " + opt.Timeout.String(),
			model:  "no answer within " + seconds(opt.Timeout),
		})
	case errors.Is(err, context.Canceled):
		return Outcome{
			Decision: Abort,
			Reason:   ReasonInterrupted,
			Detail:   "the turn was interrupted while the " + q.request() + " was open",
			model:    "the turn was interrupted",
		}
	case errors.Is(err, jsonrpc.ErrClosed), errors.Is(err, io.EOF):
		return Outcome{
			Decision: Abort,
			Reason:   ReasonPeerGone,
			Detail:   "the client left while the " + q.request() + " was open",
			model:    "the client is gone",
		}
	}
	return q.failed(opt, opt.OnError, Outcome{
		Reason: ReasonClientError,
		Detail: "the " + q.request() + " failed: " + plain.Quote(fmt.Sprint(err)),
		model:  "the client could not show the " + q.request(),
	})
}

// failed completes the outcome of a question that no human decided, following the policy.
// The caller gets the words of the model, what was not done, and the hint if the client cannot be asked
// or the policy is PolicyFailCall.
func (q *Question) failed(opt *Options, policy Policy, out Outcome) Outcome {
	out = refuse(policy, out)
	out.Level = slog.LevelWarn
	not := q.notDone()
	if out.Reason == ReasonUnsupported { // the same for all questions, so that a result has it once
		not = "what needs an approval was not done"
		if q.isForm() {
			not = "what needs an answer was not done"
		}
	}
	out.caller = sentence(out.model + ", so " + not)
	if out.Reason == ReasonUnsupported || policy == PolicyFailCall {
		out.caller += " " + opt.Hint
	}
	return out
}

// sentence makes a sentence of a clause that begins with a lower-case ASCII letter.
func sentence(clause string) string {
	return string(clause[0]-'a'+'A') + clause[1:] + "."
}

// seconds writes a duration as "600 s".
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'g', -1, 64) + " s"
}
