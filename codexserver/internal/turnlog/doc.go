// Package turnlog has the log of a turn, the only place where the events of a turn are read: the
// host of an engine writes them, and the result of the turn, its progress, its status, its tokens
// and what codex-show returns are read from it.
//
// # Two parts
//
// A [Turn] is what one turn did and does, as values, under one lock. It keeps the last 1,000 commands and
// refusals, each shortened, 10,000 files of patches, and 1 MiB of a message that is being written. It takes a
// snapshot of the folder before the turn and compares the folder with it afterwards. So it finds the changes of
// commands as well as those of patches, and does not depend on what the model says. If a snapshot is not
// possible, the result has only the changes of patches, and says so. [Turn.So] is what it did until now, and
// [Schema] describes that as JSON.
//
// A [Log] is what a thread did, as texts, for readers who need more than a result can have:
//
//	turns, events, decisions, diffs ──▶ Log ──▶ transcript, diff, outputs ──▶ pages
//
// Its texts only grow, so that offsets stay valid. The size of each kind of text is limited,
// and so is that of all logs of a [Store]. The oldest parts are dropped first, and a
// [Page] reports how much is missing. Offsets and counts are in bytes. Every text is valid
// UTF-8, and pages do not split runes. The texts come from models, files and commands. Only
// lines of a transcript that begin without a space are written by this package.
package turnlog
