package jsonrpc

import (
	"encoding/json"
	"slices"

	"github.com/codexmcp/codexmcp/mcptypes"
	jsonx "github.com/go-json-experiment/json"
)

// Cancellation says how a protocol cancels a request. Handlers never see the cancel notification: they see
// their context end with the cause [ErrCancelled].
type Cancellation interface{ profile() *CancelProfile }

// The cancellation of two protocols. For another one, see [CancelProfile].
const (
	MCPCancel ProtocolCancel = iota // a cancelled request is not answered, and initialize cannot be cancelled
	LSPCancel                       // a cancelled request is still answered
)

// ProtocolCancel is the [Cancellation] of a protocol that this package knows: [MCPCancel] of the Model Context Protocol
// (2025-06-18, basic/utilities/cancellation), or [LSPCancel] of the Language Server Protocol. Other values are MCPCancel.
type ProtocolCancel uint8

func (c ProtocolCancel) profile() *CancelProfile {
	if c == LSPCancel {
		return &CancelProfile{Method: "$/cancelRequest", IDMember: "id", Answer: true}
	}
	return &CancelProfile{
		Method:       "notifications/cancelled",
		IDMember:     "requestId",
		ReasonMember: "reason",
		Never:        []string{"initialize"},
	}
}

// CancelProfile is the [Cancellation] of a protocol of your own.
type CancelProfile struct {
	Method       string   // of the cancel notification
	IDMember     string   // the member of its params that has the id of the request
	ReasonMember string   // the member that has a text for people; "" if the protocol has none
	Answer       bool     // a cancelled request is answered: with its result, or else with CodeRequestCancelled
	Inbound      bool     // only the other side cancels: a call that this side gives up is not announced
	Never        []string // the methods that cannot be cancelled
}

func (c *CancelProfile) profile() *CancelProfile { return c }

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
