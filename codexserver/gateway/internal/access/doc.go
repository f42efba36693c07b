// Package access finds the user who sent an HTTP request to codex-mcp-gateway. A request
// has one of two kinds of tokens:
//
//	a static token   made by codex-mcp-gateway --new-token; its hash is in codex-mcp.toml
//	an access token  made by the authorization server of http.oauth, a JWT (RFC 9068)
//
// Tokens are never logged. The answer to a refused token does not name a user.
package access
