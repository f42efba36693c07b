package jsonrpc

import (
	"encoding/json"
	"slices"

	"github.com/codexmcp/codexmcp/mcptypes"
	jsonx "github.com/go-json-experiment/json"
)

// CancelProfile says how a protocol cancels a request that is being handled.
// The peer handles the cancel notification itself: handlers never see it, they
// see their context end with the cause [ErrCancelled].
type CancelProfile struct {
	// Method of the cancel notification.
	Method string

	// IDMember is the member of its params that holds the request's id.
	IDMember string

	// ReasonMember is the member that holds a text for people; "" if the
	// protocol has none.
	ReasonMember string

	// Answer says that a cancelled request is answered all the same: with its
	// result if the handler has one, else with CodeRequestCancelled. When
	// false a cancelled request gets no response.
	Answer bool

	// Inbound says that only the other side cancels: a call of this side that is
	// given up is not announced.
	Inbound bool

	// Never lists methods that cannot be cancelled.
	Never []string
}

// The profiles of two protocols. Do not change them.
var (
	// MCPCancel is the profile of the Model Context Protocol: a cancelled
	// request is not answered, initialize cannot be cancelled
	// (https://modelcontextprotocol.io/specification/2025-06-18/basic/utilities/cancellation).
	MCPCancel = &CancelProfile{
		Method:       "notifications/cancelled",
		IDMember:     "requestId",
		ReasonMember: "reason",
		Never:        []string{"initialize"},
	}

	// LSPCancel is the profile of the Language Server Protocol: a cancelled
	// request is still answered.
	LSPCancel = &CancelProfile{Method: "$/cancelRequest", IDMember: "id", Answer: true}
)

// covers reports whether a method can be cancelled. A nil profile, of a protocol without
// cancellation, covers none.
func (c *CancelProfile) covers(method string) bool {
	return c != nil && !slices.Contains(c.Never, method)
}

// encode returns the params of a cancel notification. They are appended by hand, because the
// names of the members are known only to the profile.
func (c *CancelProfile) encode(id ID, reason string) json.RawMessage {
	b := appendString([]byte{'{'}, c.IDMember)
	b = id.AppendJSON(append(b, ':'))
	if c.ReasonMember != "" && reason != "" {
		b = appendString(append(b, ','), c.ReasonMember)
		b = appendString(append(b, ':'), reason)
	}
	return append(b, '}')
}

// decode reads the params of a cancel notification. ok is false without a valid id. Members
// that the profile does not have are ignored.
func (c *CancelProfile) decode(params []byte) (id ID, reason string, ok bool) {
	var m map[string]json.RawMessage
	if jsonx.Unmarshal(params, &m) != nil {
		return ID{}, "", false
	}
	id, err := mcptypes.ParseRequestID(m[c.IDMember])
	if err != nil {
		return ID{}, "", false
	}
	if r, found := m[c.ReasonMember]; found {
		_ = jsonx.Unmarshal(r, &reason) // a reason of another kind is ignored
	}
	return id, reason, true
}
