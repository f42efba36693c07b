// Package auth knows who is signed in: auth.json in the folder of the configuration,
// which it shares with the Codex CLI, and the sign-in in the user's browser.
//
//	Keeper.Current ──▶ Credentials{Method, token, email}
//	Keeper.SaveAPIKey, Keeper.Remove, Keeper.Refresh ──▶ auth.json
//	Keeper.Begin ──▶ address for the browser … callback ──▶ auth.json ──▶ done
//
// The file has the mode 0600 and is replaced as a whole. Nothing that this package logs
// or returns as an error holds a key, a token or a code.
//
// The sign-in is OAuth 2.0's authorization code flow with PKCE (RFC 7636) and a server on
// the loopback interface (RFC 8252). Whom it asks is configured; none is built in.
package auth
