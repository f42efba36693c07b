// Package thread runs the threads of a server: each a conversation of the engine, with
// its turns in order, its events, and its questions.
//
//	Table ─── Share ─── Start, Resume, Revive, Find
//	  │         one for each connection; it holds threads open
//	  └─ Thread ─── Turn: queue, engine, end
//	       └─ host: what the engine calls
//	            ├─ events ──────▶ Observers: those of the turn, listeners, trail, desk
//	            └─ questions ───▶ board.Board ──▶ places
//
// A thread belongs to the table, not to the caller that started it. The caller that
// requests a turn attends it: its [Attendance] has observers, which receive the events of
// the turn, and a place, which is asked the questions of the turn. Neither outlives the
// turn.
//
// A [Trail] records what a thread does, for readers who need more than a result can have:
//
//	turns, events, decisions, diffs ──▶ Trail ──▶ transcript, diff, outputs ──▶ pages
//
// Its texts only grow, so that offsets stay valid. The size of each kind of text is limited,
// and so is that of all trails of a [TrailStore]. The oldest parts are dropped first, and a
// [Page] reports how much is missing. Offsets and counts are in bytes. Every text is valid
// UTF-8, and pages do not split runes. The texts come from models, files and commands. Only
// lines of a transcript that begin without a space are written by this package.
//
// A [Clock] measures how long the model of a thread has been silent.
package thread
