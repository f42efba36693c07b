// Package trail keeps what threads did, for who wants to read more than a result has room
// for.
//
//	turns, events, decisions, diffs ──▶ Trail ──▶ transcript, diff, outputs ──▶ pages
//
// A [Trail] is of one thread. Its texts only grow, so that an offset stays good, and are
// bounded: each kind for itself, and the trails of a [Store] together. What is oldest is
// dropped first, and a [Page] says how much is not there. Offsets and counts are in
// bytes; every text is valid UTF-8, and no page cuts a character.
//
// The texts come from models, files and commands. The lines of a transcript that begin
// without a space are the package's own.
package trail
