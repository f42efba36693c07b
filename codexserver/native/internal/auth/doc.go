// Package auth knows who is signed in: it reads auth.json in the folder of the configuration,
// which the Codex CLI writes, and removes it.
//
// Nothing that this package returns as an error holds a key or a token.
package auth
