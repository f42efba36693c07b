// Package transcript keeps what a thread did, as texts, for readers who need more than a result can have:
//
//	turns, events, decisions, diffs ──▶ Log ──▶ transcript, diff, outputs ──▶ pages
//
// Its texts only grow, so that offsets stay valid. The size of each kind of text is limited,
// and so is that of all logs of a [Store]. The oldest parts of a text are dropped first, and the whole texts of the
// log that was not written to for the longest time; a [Page] reports how much is missing. Offsets and counts are in bytes. Every text is valid
// UTF-8, and pages do not split runes. The texts come from models, files and commands. Only
// lines of a transcript that begin without a space are written by this package.
package transcript
