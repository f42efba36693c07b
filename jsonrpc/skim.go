package jsonrpc

import (
	"bytes"

	"github.com/codexmcp/codexmcp/mcptypes"
)

// skimmer reads the envelope of a message that is too long to be held, or too deep to be
// scanned, piece by piece. Without the id of such a request its caller would wait forever
// for an answer; without the id of such an answer our own caller would. The id may come
// after the part that is too long.
//
// It follows strings and nesting and checks nothing else: the message is refused in any
// case.
type skimmer struct {
	depth   int
	str     bool // within a string
	escaped bool // after a backslash in it
	ended   bool // after the object
	broken  bool // no object, or something after it

	naming  bool   // the next string in the envelope is a member's name
	member  uint8  // the bit of the member whose value is being read
	keeping bool   // the bytes read go to kept
	kept    []byte // the name or id being read
	over    bool   // it is longer than kept may be

	seen, twice uint8
	id          []byte
}

// maxSkimmed is the longest name or id that is read.
const maxSkimmed = 1 << 10

// Write continues with the next bytes of the message, in pieces of any length. It never fails: the
// state between two bytes is all in the fields.
func (s *skimmer) Write(b []byte) (int, error) {
	for i := 0; i < len(b); i++ {
		if s.str && !s.keeping && !s.escaped { // most of a long message is such a string
			for b[i] != '"' && b[i] != '\\' {
				if i++; i == len(b) {
					return len(b), nil
				}
			}
		}
		s.step(b[i])
	}
	return len(b), nil
}

// step takes one byte. Names and ids are looked for at depth 1 only, in the envelope itself;
// below that only strings and brackets count.
func (s *skimmer) step(c byte) {
	switch {
	case s.str:
		s.keep(c)
		s.inString(c)
		return
	case c == '"':
		// In the envelope a string is a name after a brace or a comma, a value after a colon.
		s.str = true
		if s.naming {
			s.begin()
		}
		s.broken = s.broken || s.depth == 0
	case c == '{' || c == '[':
		s.broken = s.broken || s.depth == 0 && (c == '[' || s.ended)
		s.depth++
		s.naming = s.depth == 1
	case c == '}' || c == ']':
		s.depth--
		// The envelope is closed. Only white space may follow.
		if s.depth == 0 {
			s.value()
			s.ended = true
		}
		s.broken = s.broken || s.depth < 0
	case s.depth == 1 && c == ':':
		if s.member == hasID {
			s.begin()
			return
		}
	case s.depth == 1 && c == ',':
		s.value()
		s.naming = true
	case s.depth == 0:
		s.broken = s.broken || skipSpace([]byte{c}, 0) == 0
	}
	s.keep(c)
}

// inString takes a byte within a string. A quote after a backslash does not end it.
func (s *skimmer) inString(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.str = false
		if s.naming {
			s.name()
		}
	}
}

// begin starts to keep a name or an id.
func (s *skimmer) begin() { s.keeping, s.over, s.kept = true, false, s.kept[:0] }

// keep adds a byte to the name or id being read. Their length is bounded: they may be what is too
// long.
func (s *skimmer) keep(c byte) {
	switch {
	case !s.keeping:
	case len(s.kept) == maxSkimmed:
		s.over = true
	default:
		s.kept = append(s.kept, c)
	}
}

// name takes the name of a member that has been read, quotes included.
func (s *skimmer) name() {
	s.naming, s.keeping, s.member = false, false, 0
	if !s.over {
		s.member = memberBit(unquote(s.kept))
	}
	s.twice |= s.seen & s.member
	s.seen |= s.member
}

// value ends the value of a member, at a comma or the closing brace. Only the id is kept.
func (s *skimmer) value() {
	if s.keeping && !s.over {
		s.id = bytes.Clone(bytes.TrimSpace(s.kept))
	}
	s.keeping, s.member = false, 0
}

// message returns what the skimmed message was and the fault it has: an
// invalid message with the id to answer, a response that fails its call, or
// one to ignore, as message.parse has them.
func (s *skimmer) message(fault *Error) message {
	m := message{fault: fault}
	// Not one whole object: no part of it can be trusted, and the answer has no id.
	if s.broken || !s.ended {
		return m
	}
	if s.twice&hasID == 0 {
		m.id, _ = mcptypes.ParseRequestID(s.id)
	}
	switch {
	case s.seen&hasMethod != 0:
		if s.seen&hasID == 0 {
			m.kind = kindIgnored // a notification is never answered
		}
	case s.seen&(hasResult|hasError) != 0:
		m.kind = kindResponse
		if m.id.IsZero() || s.seen&hasResult != 0 && s.seen&hasError != 0 || s.twice != 0 {
			m.kind = kindIgnored
		}
	}
	return m
}

// overlong is the error of Read for a message beyond the limit, which has been
// skipped.
type overlong struct{ message message }

func (e *overlong) Error() string { return e.message.fault.Error() }

// Unwrap makes it an error that concerns one message, see [Transport].
func (e *overlong) Unwrap() error { return e.message.fault }

// tooLong returns what Read returns once s has read the message.
func (s *skimmer) tooLong(limit int) error {
	return &overlong{s.message(Errorf(CodeInvalidRequest, "message is longer than %d bytes", limit))}
}
