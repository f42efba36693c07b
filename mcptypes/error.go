package mcptypes

// DecodeError says where and why a value is not what the schema asks for.
type DecodeError struct {
	Path string // JSON pointer (RFC 6901) to the value or the missing member, "" for the whole
	Msg  string // what was expected and what was found
	Err  error  // the underlying syntax error, nil if there is none
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

// Unwrap returns Err: errors.Is(err, jsontext.ErrDuplicateName) finds a
// duplicate member.
func (e *DecodeError) Unwrap() error { return e.Err }
