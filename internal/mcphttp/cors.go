package mcphttp

import (
	"net/http"
	"slices"
	"strings"
)

// sharedHeaders are the headers that pages of [Options].Origins may send. They may also send
// headers that start with Mcp-: MCP 2026-07-28 has some for arguments of tools.
var sharedHeaders = []string{"Accept", "Authorization", "Content-Type", headerEvent, headerMethod, headerName,
	headerVersion, headerSession}

// exposedHeaders are the headers that they may read.
const exposedHeaders = headerSession + ", WWW-Authenticate, Retry-After"

// share lets the page of an allowed origin read the answer (Fetch, "CORS protocol"). It
// answers a preflight, and reports whether the request was one: a browser sends it without
// a token. The server has no cookies, so pages need no access to credentials.
func share(w http.ResponseWriter, r *http.Request) (answered bool) {
	w.Header().Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	w.Header().Set("Access-Control-Allow-Origin", origin)
	w.Header().Set("Access-Control-Expose-Headers", exposedHeaders)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	allowed := slices.Clone(sharedHeaders)
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if strings.HasPrefix(name, "mcp-") && !strings.ContainsFunc(name, notInHeader) && len(allowed) < maxShared {
			allowed = append(allowed, name)
		}
	}
	w.Header().Set("Access-Control-Allow-Methods", "POST, GET, DELETE")
	w.Header().Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
	w.Header().Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// maxShared is how many headers a preflight may ask for.
const maxShared = 64

func notInHeader(r rune) bool {
	return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
}
