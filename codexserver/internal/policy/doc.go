// Package policy decides what happens to a command or patch of a model: it runs, it runs
// in a sandbox, the user is asked, or it is refused.
//
//	argv ──▶ KnownSafe / KnownSafeStrict ──┐
//	approval policy, sandbox mode, … ──────┴──▶ Decide ──▶ Verdict
//
// For rules that allow, [Commands] returns the commands of a script. For rules that deny,
// [Mentioned] returns every command that may be in one. For approvals that last, [Literal]
// returns the words of a command that has no other meaning.
//
// Everything here is a pure function. Commands are judged by their words, and a script of
// bash -lc by its syntax tree. A script that the parser does not understand completely is
// not known to be safe.
package policy
