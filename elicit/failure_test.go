package elicit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

const hint = " Use a client that supports elicitation in form mode."

// failures are the rows of the decision table without a result. "%" stands for the clause
// that says what a refusal means.
var failures = []struct {
	row           int
	err           error
	options       *elicit.Options
	decision      elicit.Decision
	reason        elicit.Reason
	level         slog.Level
	model, caller string
}{
	{14, &jsonrpc.Error{Code: -32601, Message: "Method not found"}, nil, denied, "client_error", warn,
		"the client could not show the approval request (-32601)", "The client could not show the approval request (-32601), so %."},
	{14, fmt.Errorf("call: %w", &jsonrpc.Error{}), nil, denied, "client_error", warn,
		"the client could not show the approval request", "The client could not show the approval request, so %."},
	{14, &jsonrpc.Error{Code: -32603}, &elicit.Options{OnError: "abort"}, abort, "client_error", warn,
		"the client could not show the approval request (-32603)", "The client could not show the approval request (-32603), so %."},
	{14, &jsonrpc.Error{Code: -32602}, &elicit.Options{OnError: "fail-call", Hint: "Try harder."}, abort, "client_error", warn,
		"the client could not show the approval request (-32602)", "The client could not show the approval request (-32602), so %. Try harder."},
	{14, &jsonrpc.Error{Code: 1}, &elicit.Options{OnError: "approve"}, denied, "client_error", warn,
		"the client could not show the approval request (1)", "The client could not show the approval request (1), so %."},
	{14, jsonrpc.ErrFull, nil, denied, "client_error", warn,
		"the client could not show the approval request", "The client could not show the approval request, so %."},
	{14, nil, nil, denied, "client_error", warn,
		"the client could not show the approval request", "The client could not show the approval request, so %."},

	{15, elicit.ErrUnsupported, nil, denied, "unsupported", warn,
		"this MCP client cannot show approval requests", "This MCP client cannot show approval requests, so what needs an approval was not done." + hint},
	{15, elicit.ErrUnsupported, &elicit.Options{OnUnsupported: "fail-call", Hint: "Set approval-policy to never."}, abort, "unsupported", warn,
		"this MCP client cannot show approval requests", "This MCP client cannot show approval requests, so what needs an approval was not done. Set approval-policy to never."},
	{15, elicit.ErrUnsupported, &elicit.Options{Unable: "there is nobody", Hint: "Try harder."}, denied, "unsupported", warn,
		"there is nobody", "There is nobody, so what needs an approval was not done. Try harder."},
	{15, elicit.ErrUnsupported, &elicit.Options{OnUnsupported: "abort"}, abort, "unsupported", warn,
		"this MCP client cannot show approval requests", "This MCP client cannot show approval requests, so what needs an approval was not done." + hint},
	{15, elicit.ErrUnsupported, &elicit.Options{OnUnsupported: "approve"}, denied, "unsupported", warn,
		"this MCP client cannot show approval requests", "This MCP client cannot show approval requests, so what needs an approval was not done." + hint},

	{16, context.DeadlineExceeded, nil, denied, "timeout", warn, "no answer within 600 s", "No answer within 600 s, so %."},
	{16, context.DeadlineExceeded, &elicit.Options{OnTimeout: "abort", Timeout: 1500 * time.Millisecond}, abort, "timeout", warn,
		"no answer within 1.5 s", "No answer within 1.5 s, so %."},
	{16, context.DeadlineExceeded, &elicit.Options{OnTimeout: "fail-call", Timeout: 2 * time.Second}, abort, "timeout", warn,
		"no answer within 2 s", "No answer within 2 s, so %." + hint},
	{16, context.DeadlineExceeded, &elicit.Options{OnTimeout: "approve"}, denied, "timeout", warn, "no answer within 600 s", "No answer within 600 s, so %."},

	{17, context.Canceled, nil, abort, "interrupted", info, "the turn was interrupted", ""},
	{18, jsonrpc.ErrClosed, nil, abort, "peer_gone", info, "the client is gone", ""},
	{18, io.EOF, nil, abort, "peer_gone", info, "the client is gone", ""},
}

func TestReadErrorTable(t *testing.T) {
	for _, tt := range failures {
		for _, kind := range kinds {
			out := kind.question.ReadError(tt.err, tt.options)
			if out.Decision != tt.decision || out.Reason != tt.reason || out.Level != tt.level {
				t.Errorf("row %d, %s: %v: got %+v", tt.row, kind.name, tt.err, out)
			}
			if got, want := out.ForModel(), fill(tt.model, kind.notDone); got != want {
				t.Errorf("row %d, %s: %v: for the model %q, want %q", tt.row, kind.name, tt.err, got, want)
			}
			if got, want := out.ForCaller(), fill(tt.caller, kind.notDone); got != want {
				t.Errorf("row %d, %s: %v: for the caller %q, want %q", tt.row, kind.name, tt.err, got, want)
			}
			if out.Detail == "" {
				t.Errorf("row %d, %s: %v: nothing for the log", tt.row, kind.name, tt.err)
			}
		}
		if out := elicit.ReadError(tt.err, tt.options); !reflect.DeepEqual(out, kinds[0].question.ReadError(tt.err, tt.options)) {
			t.Errorf("row %d: %v: ReadError differs: %+v", tt.row, tt.err, out)
		}
	}
}

func fill(text, clause string) string {
	for i := range len(text) {
		if text[i] == '%' {
			return text[:i] + clause + text[i+1:]
		}
	}
	return text
}

// The message of the client's error is escaped in the log.
func TestReadErrorDetail(t *testing.T) {
	out := elicit.ReadError(&jsonrpc.Error{Code: -1, Message: "no\nway"}, nil)
	if want := "error answer to the approval request: (-1) `\"no\\nway\"`"; out.Detail != want {
		t.Errorf("%s, want %s", out.Detail, want)
	}
	out = elicit.ReadError(errors.New("lost"), nil)
	if want := `the approval request failed: "lost"`; out.Detail != want {
		t.Errorf("%s, want %s", out.Detail, want)
	}
}
