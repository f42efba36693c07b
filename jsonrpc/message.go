package jsonrpc

import (
	"bytes"
	"math/bits"

	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json/jsontext"
)

// ID is a request id: a string or an integer, comparable, exact beyond 2^53. 1 and "1"
// differ. The zero ID means that there is no id.
type ID = mcptypes.RequestID

// kind says what a message is.
type kind uint8

const (
	kindInvalid      kind = iota // answered with fault
	kindRequest                  // method and id
	kindNotification             // method, no id
	kindResponse                 // result or error
	kindIgnored                  // a broken notification or response: reported, never answered
	kindEmpty                    // an id alone, for [Options.LenientAnswers]: a response without its result, or invalid
)

// message is one scanned envelope. method, params, result and errv are slices
// of the line, so a message that is kept keeps the line in memory.
//
// Parsing is in three steps: scan finds the members, check says what is wrong with them, and
// classify decides what the message is all the same. The last two differ because of JSON-RPC's
// rule that a notification or a response is never answered, not even if it is broken.
type message struct {
	kind   kind
	id     ID     // the zero ID when absent or unreadable
	method []byte // decoded
	params []byte // nil when absent or null
	result []byte
	errv   []byte
	fault  *Error // why the message is invalid or ignored
	array  bool   // it is a valid array, which is invalid unless batches are accepted
}

// dialect is what a scan needs to know about the protocol.
type dialect struct {
	depth   int  // nesting allowed in one message
	lenient bool // the jsonrpc member may be absent or another string
	answers bool // see [Options.LenientAnswers]
}

// Members of the envelope, as bits of a set of those seen. A set costs nothing to make for
// each message, and shows a second occurrence with one operation.
const (
	hasVersion = 1 << iota
	hasID
	hasMethod
	hasParams
	hasResult
	hasError
)

// memberNames are in the order of the bits.
var memberNames = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

// memberBit is the bit of an envelope member, 0 for any other name. Names are
// compared exactly: "Method" is an unknown member.
func memberBit(name []byte) uint8 {
	switch string(name) {
	case "jsonrpc":
		return hasVersion
	case "id":
		return hasID
	case "method":
		return hasMethod
	case "params":
		return hasParams
	case "result":
		return hasResult
	case "error":
		return hasError
	}
	return 0
}

// envelope holds the members as they are in the line. Of a member that occurs twice it holds
// the last; nothing uses it, because the message is refused.
type envelope struct {
	seen, twice                              uint8
	version, id, method, params, result, err []byte
}

// parse scans one line into m. It never fails: what cannot be read becomes a kindInvalid
// message whose fault is the answer to send.
func (m *message) parse(line []byte, d dialect) {
	*m = message{}
	// The whole line is scanned before anything is decided: a request whose last byte is wrong
	// must not be handled.
	var e envelope
	end, f := checkValue(line, d.depth, &e)
	if f != scanOK {
		m.refuse(line, end, f, d)
		return
	}
	switch line[skipSpace(line, 0)] {
	case '{':
		m.classify(&e, d)
	case '[':
		m.array, m.fault = true, Errorf(CodeInvalidRequest, "batches are not accepted")
	default:
		m.fault = Errorf(CodeInvalidRequest, "a message is an object")
	}
}

// refuse makes m what a line is whose scan stopped at a byte. Of what is not JSON nothing can be
// trusted, not even an id that came before the fault. What is only too deep is valid so far,
// so its id is looked for.
func (m *message) refuse(line []byte, at int, f scanFault, d dialect) {
	if f == scanDepth {
		var s skimmer
		_, _ = s.Write(line) // never fails
		*m = s.message(Errorf(CodeInvalidRequest, "nesting is deeper than %d levels", d.depth))
		return
	}
	if d.answers {
		clean := bytes.TrimPrefix(bytes.ToValidUTF8(line, []byte("\uFFFD")), []byte("\uFEFF"))
		if !bytes.Equal(clean, line) {
			if m.parse(clean, d); m.kind == kindResponse {
				return
			}
			*m = message{}
		}
	}
	m.fault = Errorf(CodeParseError, "not valid JSON at byte %d", at)
}

// put notes a member; bit is 0 for one that the envelope does not have, which is ignored.
func (e *envelope) put(bit uint8, v []byte) {
	e.twice |= e.seen & bit
	e.seen |= bit
	switch bit {
	case hasVersion:
		e.version = v
	case hasID:
		e.id = v
	case hasMethod:
		e.method = v
	case hasParams:
		e.params = v
	case hasResult:
		e.result = v
	case hasError:
		e.err = v
	}
}

// unquote decodes a scanned string; without escapes it is a slice of it. An
// unpaired surrogate becomes U+FFFD.
func unquote(s []byte) []byte {
	if bytes.IndexByte(s, '\\') < 0 {
		return s[1 : len(s)-1]
	}
	out, _ := jsontext.AppendUnquote(nil, s)
	return out
}

// classify decides what a well-formed object is and what is wrong with it.
//
// A message that names a method as a string and has no id is a notification
// whatever else is wrong with it, and so never answered (JSON-RPC 2.0,
// section 4.1); a result or error without a method is a response and never
// answered either.
func (m *message) classify(e *envelope, d dialect) {
	if d.answers && e.seen&(hasResult|hasError) != 0 && e.seen&hasMethod != 0 && e.method[0] == 'n' {
		e.seen &^= hasMethod
	}
	var idErr error
	if e.seen&hasID != 0 {
		m.id, idErr = mcptypes.ParseRequestID(e.id)
	}
	m.fault = e.check(idErr, d)
	if e.twice&hasID != 0 {
		m.id = ID{} // which of the two is meant cannot be known
	}
	switch {
	case e.seen&hasMethod != 0:
		m.classifyCall(e)
	case e.seen&(hasResult|hasError) != 0:
		m.classifyResponse(e, d)
	case d.answers && !m.id.IsZero() && e.twice == 0:
		m.kind = kindEmpty
	}
}

// classifyCall classifies what has a method. With a fault it is invalid and answered, unless it
// is clear that it is a notification.
func (m *message) classifyCall(e *envelope) {
	isString := e.method[0] == '"'
	if isString {
		m.method = unquote(e.method)
	}
	// null counts as absent, as many clients send it for no params.
	if e.seen&hasParams != 0 && e.params[0] != 'n' {
		m.params = e.params
	}
	switch {
	case m.fault == nil && e.seen&hasID != 0:
		m.kind = kindRequest
	case m.fault == nil:
		m.kind = kindNotification
	case isString && e.seen&hasID == 0:
		m.kind = kindIgnored
	}
}

// classifyResponse classifies what has a result or an error and no method. A response with
// another fault, such as a wrong version, still ends its call, with the fault as the error: its
// caller would otherwise wait forever.
func (m *message) classifyResponse(e *envelope, d dialect) {
	m.kind = kindResponse
	m.result, m.errv = e.result, e.err
	both := e.seen&hasResult != 0 && e.seen&hasError != 0
	if null := both && e.result[0] == 'n'; d.answers && both && null != (e.err[0] == 'n') {
		if both = false; null {
			m.result = nil
		} else {
			m.errv = nil
		}
	}
	// Without an id no call can be found, and of a result and an error neither can be trusted.
	if m.id.IsZero() || both && !d.answers || e.twice != 0 {
		m.kind = kindIgnored
	}
	if (m.kind == kindIgnored || both) && m.fault == nil {
		m.fault = Errorf(CodeInvalidRequest, "a response has an id and either a result or an error")
	}
}

// check returns what makes the envelope an invalid one, or nil. The order of the cases decides
// which of several faults is reported.
func (e *envelope) check(idErr error, d dialect) *Error {
	switch {
	case e.twice != 0:
		return Errorf(CodeInvalidRequest, "member %q occurs twice", memberNames[bits.TrailingZeros8(e.twice)])
	case e.seen&(hasMethod|hasResult|hasError) == 0:
		return Errorf(CodeInvalidRequest, "no method, result or error")
	case !e.versionOK(d):
		return Errorf(CodeInvalidRequest, `jsonrpc is not "2.0"`)
	case e.seen&hasMethod == 0:
		return nil
	case e.seen&(hasResult|hasError) != 0:
		return Errorf(CodeInvalidRequest, "both method and result or error")
	case idErr != nil:
		return Errorf(CodeInvalidRequest, "id must be a string or an integer")
	case e.method[0] != '"':
		return Errorf(CodeInvalidRequest, "method is not a string")
	case e.seen&hasParams != 0 && e.params[0] != '{' && e.params[0] != '[' && e.params[0] != 'n':
		return Errorf(CodeInvalidRequest, "params must be an object or an array")
	}
	return nil
}

// versionOK compares without decoding in the usual case. Escapes are allowed in the string, so
// the other case exists too.
func (e *envelope) versionOK(d dialect) bool {
	if e.seen&hasVersion == 0 {
		return d.lenient
	}
	return string(e.version) == `"2.0"` || e.version[0] == '"' && (d.lenient || string(unquote(e.version)) == "2.0")
}
