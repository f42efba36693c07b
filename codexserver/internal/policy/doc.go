// Package policy decides what happens to a command or a patch that a model
// asks for: it runs, it runs in a sandbox, the user is asked, or it is refused.
//
//	argv ──▶ KnownSafe / KnownSafeStrict ──┐
//	approval policy, sandbox mode, … ──────┴──▶ Decide ──▶ Verdict
//
// For rules that allow, [Commands] takes scripts apart; for those that deny,
// [Mentioned] finds what may be in them; [Programs] names what they start.
//
// Everything here is a pure function. Commands are judged by their words, and
// a script of bash -lc by its syntax tree: what the parser does not understand
// completely is not known to be safe.
package policy
