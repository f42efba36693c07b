// Package decide says what happens to a command or patch of a model: it runs, it runs
// in a sandbox, the user is asked, or it is refused.
//
//	argv ──▶ KnownSafe ──────────────┐
//	approval policy, sandbox mode, … ┴──▶ Exec ──▶ Verdict
//
// For rules that allow, [Commands] returns the commands of a script. Rules that deny and ask are
// compared by [Mentions] with every command that may be in one.
//
// [Grant.Beyond] compares what a conversation has with what the configuration gives, for both engines.
//
// These are pure functions, but that the working folder of a grant is looked up. Commands are judged by their words, and a
// script of bash -lc by its syntax tree. A script
// that the parser does not understand completely is not known to be safe. Words do not determine the files that run, so
// nothing leaves the sandbox because of them alone, unless a person wrote a rule for it.
package decide
