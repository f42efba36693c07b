// Package passkey proves that a person approved an action: an authenticator of theirs, a passkey,
// signed what was approved (Web Authentication, levels 2 and 3).
//
//	Statement ── Hash ──▶ challenge ──▶ browser, authenticator ──▶ Assertion
//	                                                                   │
//	approvals.log ◀── Proof ◀── Prove: the file of the keys ◀──────────┘
//	      └──────────▶ Verify: years later, without a server
//
// The challenge is the hash of the statement, which has the question, the decision, the origin and a
// nonce of the server. So a signature is good for one question, one decision and one time. The browser
// signs its origin with it, and the authenticator the relying party and that it verified the person.
//
// The package reads only what it needs: keys of ES256, EdDSA and RS256, and attestation objects of the
// format none, because it trusts no maker of authenticators. What it reads is hostile and bounded.
package passkey
