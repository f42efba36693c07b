// Package audit has the record of approvals and effects as a chain that can be checked: who decided, what
// ran because of it, and how that ended.
//
//	board: decisions ───┐                     ┌── Verify: the first fault, and the head
//	                    ├──▶ Line ──▶ Log ────┼── Read: timelines, pages, trials of rules
//	thread: effects ────┘    a file, chained  └── the next server: closes what a dead one left
//
// # Lines
//
// A [Line] is one JSON object. It is a decision, or of one of these kinds of effects:
//
//	begins   a command, a patch or a tool is about to run, with the id of the decision that allows it
//	ends     how that ended: exit status, changed files with their hashes
//	refused  the engine refused something without a question
//	changed  what a turn has changed, at its end
//
// The line of a beginning is in the file before the effect, if the engine reports the beginning first. An effect
// has one beginning and one end. The board writes decisions, and the host of an engine writes the rest from the
// events that also make the log of a turn; this package records nothing by itself.
//
// # The chain
//
// A [Log] ends each line with its place in the chain and a hash:
//
//	…,"chain":{"n":7,"writer":"4711-k2…","open":1,"prev":"…"},"hash":"…"}
//
// The hash is the SHA-256 of the bytes before it. Prev is the hash of the line before, whichever process wrote
// that: all servers with one file write one chain, because each reads the end of the file under its lock. A new
// file continues the chain of the file that it replaces. So one hash, the head, stands for all lines before.
// Open counts the effects that have not ended. If it is 0, the next server has nothing to do when it starts.
//
// A server that is killed leaves effects without an end, and perhaps a part of a line. The next server writes the
// ends, with words, of the effects of servers that are dead, and its first line has the hash of the
// part (torn). If another process keeps the file locked, lines are appended anyway and say so (loose): their place
// is then checked less strictly. The line of the process that had the lock may follow them late. Then no line has
// the hash of the last loose one, and nothing shows that it is missing.
//
// Whoever can write the file can also compute a whole new chain. Only a head that is kept elsewhere shows that,
// and that lines are missing at the end.
package audit
