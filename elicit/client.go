package elicit

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// A Client is what a server knows about its client. It comes from initialize, or since
// MCP 2026-07-28 from each request (see RequestClient).
type Client struct {
	// Capabilities is the capabilities object, such as a [json.RawMessage] as it arrived, or
	// the ClientCapabilities of package mcptypes, as a handler of initialize gets them. A
	// client without, or whose capabilities cannot be encoded, cannot be asked.
	Capabilities json.Marshaler
	// ProtocolVersion is the negotiated version, such as "2025-06-18".
	ProtocolVersion string
	// Name is the name that the client sent for itself.
	Name string
}

// RequestClient returns what the _meta of a request of MCP 2026-07-28 says about its
// client. A member that is missing or ambiguous leaves its field empty; a client without
// Capabilities cannot be asked. Do not use the result for another request: each request
// declares its own client.
func RequestClient(meta json.RawMessage) Client {
	const prefix = "io.modelcontextprotocol/"
	said := members(meta)
	var client Client
	if capabilities, ok := said[prefix+"clientCapabilities"]; ok {
		client.Capabilities = json.RawMessage(capabilities)
	}
	client.ProtocolVersion, _ = text(said[prefix+"protocolVersion"])
	client.Name, _ = text(members(json.RawMessage(said[prefix+"clientInfo"]))["name"])
	return client
}

// CanAsk reports whether the client declared that it answers elicitations in form mode:
// with {"elicitation":{}}, or since MCP 2025-11-25 with {"elicitation":{"form":{}}}. A
// client with {"elicitation":{"url":{}}} shows no forms.
func (c Client) CanAsk() bool {
	modes, ok := c.modes()
	if !ok {
		return false
	}
	if form, ok := modes["form"]; ok {
		return form.Kind() == '{'
	}
	_, url := modes["url"]
	return !url
}

// declaresForms reports whether the client declares the mode form by its name, as clients do that know of modes. The
// plain {"elicitation":{}} also comes from clients that show a message and no fields.
func (c Client) declaresForms() bool {
	modes, _ := c.modes()
	form, ok := modes["form"]
	return ok && form.Kind() == '{'
}

// modes returns the modes of elicitation that the client declares, and whether it declares elicitation.
func (c Client) modes() (modes map[string]jsontext.Value, ok bool) {
	if c.Capabilities == nil {
		return nil, false
	}
	raw, err := c.Capabilities.MarshalJSON()
	if err != nil {
		return nil, false
	}
	elicitation := members(raw)["elicitation"]
	if elicitation.Kind() != '{' {
		return nil, false
	}
	return members(json.RawMessage(elicitation)), true
}

// members returns the members of an object, and none of anything else. It is as strict as unmarshal, and
// does without reflection, because each client waits for it when it connects.
func members(raw json.RawMessage) map[string]jsontext.Value {
	object := map[string]jsontext.Value{}
	if v := jsontext.Value(raw); !v.IsValid() || v.Kind() != '{' {
		return object
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(raw)) // of a valid text, so it fails nowhere
	for _, _ = d.ReadToken(); d.PeekKind() == '"'; {
		name, _ := d.ReadToken()
		key := name.String()
		value, _ := d.ReadValue()
		object[key] = value.Clone()
	}
	return object
}
