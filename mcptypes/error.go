package mcptypes

import "github.com/codexmcp/codexmcp/mcptypes/codec"

// DecodeError is the place at which a value does not follow the schema, and the reason.
type DecodeError = codec.DecodeError
