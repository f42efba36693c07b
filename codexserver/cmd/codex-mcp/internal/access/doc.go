// Package access finds out whose an HTTP request is, where codex-mcp http has several
// users. A request brings one of two kinds of tokens:
//
//	a static token   made by codex-mcp http --new-token; its hash is in codex-mcp.toml
//	an access token  made by the authorization server of http.oauth, a JWT (RFC 9068)
//
// Neither is ever logged, and no answer says which user a refused token would have been
// of.
package access
