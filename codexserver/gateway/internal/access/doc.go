// Package access finds the user who sent an HTTP request to a codex-mcp http with several
// users. A request has one of two kinds of tokens:
//
//	a static token   made by codex-mcp http --new-token; its hash is in codex-mcp.toml
//	an access token  made by the authorization server of http.oauth, a JWT (RFC 9068)
//
// Tokens are never logged. The answer to a refused token does not name a user.
package access
