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
// These are pure functions. Commands are judged by their words, and a script of bash -lc by
// its syntax tree. A script that the parser does not understand completely is not known to
// be safe.
//
// A rule allows words, such as "go test", and so does a user who approves a command for a
// session. The words do not determine the files that run. If such a file, or a link on the
// way to it, lies in a folder that commands may write without a question, the same words
// can later run something else. [Place.Replaceable] is for rules, which cannot remember
// anything: no program that a command names may lie in such a folder. [Place.Content] is for
// approvals for a session: its sum changes when a file changes that a word, or a part of
// one, names in such a folder. Both see only names. They do not see what a program reads or
// starts without naming it.
//
// [Self.StartedBy] recognizes commands that would start the running program again.
package policy
