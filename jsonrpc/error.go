package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Code is the code of an error answer. It is itself an error, which a handler may return, and
// which errors.Is finds in an [*Error] with that code.
type Code int64

// The codes of JSON-RPC 2.0, section 5.1, and others that a peer answers with.
const (
	CodeParseError       Code = -32700 // the line is not JSON
	CodeInvalidRequest   Code = -32600 // JSON, but not a message; a duplicate id; a batch; a limit exceeded
	CodeMethodNotFound   Code = -32601 // no handler for the method
	CodeInvalidParams    Code = -32602 // params cannot be read as what the method takes
	CodeInternalError    Code = -32603 // the handler failed without saying how, or panicked
	CodeOverloaded       Code = -32000 // too many requests are waiting, or the peer is shutting down
	CodeRequestCancelled Code = -32800 // LSP: the requester cancelled
)

// Error describes the code, "code N" for codes this package has no name for.
func (c Code) Error() string {
	switch c {
	case CodeParseError:
		return "parse error"
	case CodeInvalidRequest:
		return "invalid request"
	case CodeMethodNotFound:
		return "method not found"
	case CodeInvalidParams:
		return "invalid params"
	case CodeInternalError:
		return "internal error"
	case CodeOverloaded:
		return "overloaded"
	case CodeRequestCancelled:
		return "request cancelled"
	}
	return "code " + strconv.FormatInt(int64(c), 10)
}

// Error is the error of an answer, received or to be sent. One that a handler returns, wrapped or
// not, is sent as it is. Any other error is sent as CodeInternalError with its text, so a handler
// must not return errors whose text is secret; a Code is sent with its description.
type Error struct {
	Code    Code            // -32768 to -32000 are the specification's
	Message string          // one sentence
	Data    json.RawMessage // any JSON value; nil when absent
}

// Error returns the message and the code.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code.Error()
	}
	return e.Message + " (" + strconv.FormatInt(int64(e.Code), 10) + ")"
}

// Is reports whether target is the code of e, or has its code and message.
func (e *Error) Is(target error) bool {
	switch t := target.(type) {
	case Code:
		return t == e.Code
	case *Error:
		return t != nil && t.Code == e.Code && t.Message == e.Message
	}
	return false
}

// Errorf returns an [*Error] with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Errors that callers decide on.
var (
	// ErrClosed is returned by calls and notifications on a peer that has ended, or whose other side has.
	ErrClosed = errors.New("jsonrpc: connection closed")

	// ErrCancelled is the cause (see [context.Cause]) of a handler's context when the other side cancelled the request.
	ErrCancelled = errors.New("jsonrpc: cancelled by the other side")

	// ErrFull is returned when the queue to the other side, or the number of calls without an answer, is at its limit.
	ErrFull = errors.New("jsonrpc: too much unsent or unanswered")

	// ErrNoCall is what is wrong with an answer that comes after its call has ended, or without one.
	ErrNoCall = errors.New("which no call waits for")
)

// asError turns a handler's error into what is sent. A wrapped *Error is sent without the text of
// what wraps it: the handler has chosen the text for the other side, and what was added later is
// for this side's log.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		if e == nil { // a nil *Error in an error interface, which is not nil
			return &Error{Code: CodeInternalError, Message: "internal error: the handler returned a nil *Error"}
		}
		return e
	}
	var c Code
	if errors.As(err, &c) {
		return &Error{Code: c, Message: err.Error()}
	}
	return &Error{Code: CodeInternalError, Message: err.Error()}
}
