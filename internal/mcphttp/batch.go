package mcphttp

import (
	"net/http"

	"github.com/codexmcp/codexmcp/jsonrpc"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// batchVersion is the only version of MCP whose clients may send batches.
const batchVersion = "2025-03-26"

// maxBatch is how many messages a batch may have.
const maxBatch = 256

// errBatch is the answer to a batch outside of a session of batchVersion.
var errBatch = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "batches are not accepted"}

// postBatch serves a POST of a valid array. If a message of it is invalid, none is handled.
func (h *Handler) postBatch(w http.ResponseWriter, r *http.Request, p *principal, who Principal, body []byte) {
	noteMessage(w, &envelope{method: "batch"})
	s := h.session(p, r.Header.Get(headerSession))
	if s == nil || !s.batches() || !legacyVersion(r.Header.Values(headerVersion)) {
		fail(w, http.StatusBadRequest, jsonrpc.ID{}, errBatch)
		return
	}
	var bodies []jsontext.Value
	_ = jsonv2.Unmarshal(body, &bodies, lenient()) // it is an array of anything, so this cannot fail
	if len(bodies) == 0 || len(bodies) > maxBatch {
		fail(w, http.StatusBadRequest, jsonrpc.ID{},
			jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "a batch has 1 to %d messages", maxBatch))
		return
	}
	messages := make([]message, len(bodies))
	for i, body := range bodies {
		e, fault := parseFor(p.own, body)
		if fault == nil && e.meta != nil {
			fault = errBatch // that version has none
		}
		if fault != nil {
			fail(w, http.StatusBadRequest, e.id, fault)
			return
		}
		messages[i] = message{&e, body}
	}
	h.postInSession(w, r, s, who, messages...)
}

// batches reports whether the client may send batches.
func (s *session) batches() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version == batchVersion
}
