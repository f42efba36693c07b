package elicit

import (
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Since MCP 2026-07-28 a server sends no requests. It answers a call with questions under
// keys that it chooses (inputRequests). The client repeats the call with the answers under
// the same keys (inputResponses):
// https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr.

// RequestClient returns what the _meta of a request of MCP 2026-07-28 says about its
// client. A member that is missing or ambiguous leaves its field empty; a client without
// Capabilities cannot be asked. Do not use the result for another request: each request
// declares its own client.
func RequestClient(meta json.RawMessage) Client {
	const prefix = "io.modelcontextprotocol/"
	var members map[string]jsontext.Value
	if unmarshal(meta, &members) != nil {
		return Client{}
	}
	client := Client{Capabilities: json.RawMessage(members[prefix+"clientCapabilities"])}
	client.ProtocolVersion, _ = text(members[prefix+"protocolVersion"])
	if name, ok := member(json.RawMessage(members[prefix+"clientInfo"]), "name"); ok {
		client.Name, _ = text(name)
	}
	return client
}

// InputRequest returns q as one of the inputRequests of a result: the method
// elicitation/create with the Params for that client. Use it only if client.CanAsk()
// returns true. It fails as Params does.
func (q *Question) InputRequest(client Client, o *Options) (json.RawMessage, error) {
	params, err := q.Params(client, o)
	if err != nil {
		return nil, err
	}
	raw, err := marshal(map[string]any{"method": method, "params": jsontext.Value(params)})
	if err != nil {
		return nil, fmt.Errorf("elicit: input request: %w", err)
	}
	return raw, nil
}

// ReadInputResponse reads the answer to q: the raw value in inputResponses under the key of
// the InputRequest. It decides as Read does, except that the flat {"decision": …} never
// counts, whatever o says: no server asks a client of this version for it.
//
// The caller checks the rest: the question was asked in a result and is still open, it is
// answered once, and the repeated call has the tool and the arguments of the first. A
// missing key means that there is no answer yet: ask again.
func (q *Question) ReadInputResponse(response json.RawMessage, o *Options) Outcome {
	modern := Options{}
	if o != nil {
		modern = *o
	}
	modern.NoLegacyFlat = true
	return q.Read(response, &modern)
}
