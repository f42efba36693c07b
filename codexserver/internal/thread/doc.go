// Package thread runs the threads of a server: each a conversation of the engine, with
// its turns in order, its events, and its questions.
//
//	Table ─── Share ─── Start, Resume, Revive, Find
//	  │         one for each connection; it holds threads open
//	  └─ Thread ─── Turn: queue, engine, end
//	       └─ host: what the engine calls
//	            ├─ events ──────▶ Watcher of the turn, listeners, desk
//	            └─ questions ───▶ approval.Board ──▶ places
//
// A thread belongs to the table, not to who started it. The caller that asks for a turn
// attends it: its [Attendance] is a watcher, which sees the events of the turn, and a
// place, where the questions of the turn stand. Neither outlives the turn.
package thread
