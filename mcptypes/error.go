package mcptypes

// DecodeError is the place at which a value does not follow the schema, and the reason.
type DecodeError struct {
	Package string // the package of the type, which Error begins with
	Path    string // JSON pointer (RFC 6901) to the value or the missing member, "" for the root
	Msg     string // what was expected and what was found
	Err     error  // jsontext.ErrDuplicateName or io.ErrUnexpectedEOF, if that is the reason
}

// Error returns the package, the path and the message.
func (e *DecodeError) Error() string {
	text := e.Msg
	for _, before := range []string{e.Path, e.Package} {
		if before != "" {
			text = before + ": " + text
		}
	}
	return text
}

// JSONPointer returns Path. Package jsonrpc reports it to the sender of the params.
func (e *DecodeError) JSONPointer() string { return e.Path }

// Unwrap returns Err, so that errors.Is(err, jsontext.ErrDuplicateName) reports a duplicate
// member.
func (e *DecodeError) Unwrap() error { return e.Err }
