// Package thread runs the threads of a server: each a conversation of the engine, with
// its turns in order, its events, and its questions.
//
//	Table ─── Share ─── Start, Resume, Revive, Find
//	  │         one for each connection; it holds threads open
//	  └─ Thread ─── Begin: queue, engine, end
//	       └─ host.go: what the engine calls
//	            ├─ events ──────▶ turn, then the client, listeners, metrics, desk
//	            └─ questions ───▶ approve.Board ──▶ places
//
// A thread belongs to the table, not to the caller that started it. The caller that
// requests a turn attends it: its [Attend] has a client, which hears the events of
// the turn, and a place, which is asked the questions of the turn. Neither outlives the
// turn.
package thread
