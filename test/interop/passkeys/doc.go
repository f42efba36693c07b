// Package passkeys compares what the approvals page takes for the signature of a passkey with what
// github.com/go-webauthn/webauthn takes for one.
package passkeys
