package mcphttp

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/era"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// The headers of MCP.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerSession = "Mcp-Session-Id"
	headerEvent   = "Last-Event-ID"
	headerThread  = era.HeaderThread
)

// once are the headers that must not occur twice in a request. A proxy between client and
// server could use the other value.
var once = []string{headerVersion, headerMethod, headerName, headerSession, headerEvent, headerThread, "Content-Type",
	"Content-Encoding"}

// checkHeaders compares the headers of a request of 2026-07-28 with its body. They must
// agree, because a proxy between client and server may decide by the headers.
func checkHeaders(h http.Header, e *envelope) *jsonrpc.Error {
	version, err := oneHeader(h, headerVersion)
	if err != nil {
		return err
	}
	if said := metaVersion(e); said != nil && *said != version {
		return mismatch("%s is %q, and the body says %q", headerVersion, version, *said)
	}
	method, err := oneHeader(h, headerMethod)
	if err != nil {
		return err
	}
	if method != e.method {
		return mismatch("%s is %q, and the body says %q", headerMethod, method, e.method)
	}
	if err := checkName(h, e); err != nil {
		return err
	}
	return checkThread(h, e)
}

// checkThread compares the header that mirrors the argument threadId with the body. Clients
// learn of the header when they list the tools (2026-07-28, x-mcp-header).
func checkThread(h http.Header, e *envelope) *jsonrpc.Error {
	if len(h.Values(headerThread)) == 0 && e.params.ThreadID == nil {
		return nil
	}
	return checkText(h, headerThread, e.params.ThreadID)
}

// checkName compares Mcp-Name with the name, URI or task in the body.
func checkName(h http.Header, e *envelope) *jsonrpc.Error {
	var named *string
	required := true
	switch e.method {
	case "tools/call", "prompts/get":
		named = e.params.Name
	case "resources/read":
		named = e.params.URI
	case "tasks/get", "tasks/update", "tasks/cancel":
		named, required = e.params.TaskID, false
	default:
		return nil
	}
	if len(h.Values(headerName)) == 0 && (!required || named == nil) {
		return nil // the method reports what is missing
	}
	return checkText(h, headerName, named)
}

// checkText compares a header, which may be in base64, with a text of the body. text is nil
// if the body lacks it.
func checkText(h http.Header, header string, text *string) *jsonrpc.Error {
	said, err := oneHeader(h, header)
	if err != nil {
		return err
	}
	if coded, ok := strings.CutPrefix(said, "=?base64?"); ok && strings.HasSuffix(coded, "?=") {
		plain, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSuffix(coded, "?="))
		if err != nil || !utf8.Valid(plain) {
			return mismatch("%s cannot be decoded", header)
		}
		said = string(plain)
	}
	if text == nil || said != *text {
		return mismatch("%s differs from the body", header)
	}
	return nil
}

// oneHeader returns a header, which must be in printable ASCII. It occurs at most once, see once.
func oneHeader(h http.Header, name string) (string, *jsonrpc.Error) {
	value := h.Get(name)
	switch {
	case len(h.Values(name)) == 0:
		return "", mismatch("%s is missing", name)
	case strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }):
		return "", mismatch("%s has invalid characters", name)
	}
	return value, nil
}

// metaVersion returns the version in the _meta of a request, nil if it is not a string.
func metaVersion(e *envelope) *string { return text(member(e.meta, modern.MetaProtocolVersion)) }

func mismatch(format string, args ...any) *jsonrpc.Error {
	return jsonrpc.Errorf(modern.CodeHeaderMismatch, "header mismatch: "+format, args...)
}

// legacyVersion reports whether a request of a session may have these values of
// Mcp-Protocol-Version: one supported version, or none, as before 2025-06-18.
func legacyVersion(values []string) bool {
	return len(values) == 0 || values[0] != modern.ProtocolVersion && slices.Contains(era.Versions(), values[0])
}

// accepts reports whether the client accepts all of these media types.
func accepts(r *http.Request, types ...string) bool {
	values := r.Header.Values("Accept")
	if len(values) == 0 {
		return true
	}
	var all []string
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, _, _ := strings.Cut(part, ";")
		all = append(all, strings.ToLower(strings.TrimSpace(name)))
	}
	for _, t := range types {
		group, _, _ := strings.Cut(t, "/")
		if !slices.Contains(all, t) && !slices.Contains(all, "*/*") && !slices.Contains(all, group+"/*") {
			return false
		}
	}
	return true
}
