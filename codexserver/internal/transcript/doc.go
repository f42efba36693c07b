// Package transcript keeps what a thread did, as texts, for readers who need more than a result can have:
//
//	turns, events, decisions, diffs ──▶ Log ──▶ transcript, diff, outputs ──▶ pages
//
// A log has one file of bounded size, with a region for each kind of text and an index of what the commands printed.
// Its texts only grow, so that offsets stay valid, and lose their oldest parts; a [Page] reports how much is missing.
// Offsets and counts are in bytes. Every text is valid UTF-8, and pages do not split runes. The texts come from
// models, files and commands. Only the server writes lines of a transcript that begin without a space.
//
// [Log.Last] is for people: without the questions, which they see elsewhere, and with a few lines of each output.
package transcript
