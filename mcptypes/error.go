package mcptypes

// DecodeError is the place at which a value does not follow the schema, and the reason.
type DecodeError struct {
	Path string // JSON pointer (RFC 6901) to the value or the missing member, "" for the root
	Msg  string // what was expected and what was found
	Err  error  // the underlying syntax error, or nil
}

// Error returns the path and the message.
func (e *DecodeError) Error() string {
	if e.Path == "" {
		return "mcptypes: " + e.Msg
	}
	return "mcptypes: " + e.Path + ": " + e.Msg
}

// JSONPointer returns Path. Package jsonrpc reports it to the sender of the params.
func (e *DecodeError) JSONPointer() string { return e.Path }

// Unwrap returns Err, so that errors.Is(err, jsontext.ErrDuplicateName) reports a duplicate
// member.
func (e *DecodeError) Unwrap() error { return e.Err }
