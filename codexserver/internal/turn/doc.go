// Package turn has the turn, the one object that knows what a turn did and does, the only place where the events
// of a turn are read: the host of an engine writes them, and the result of the turn, its progress, its status and
// its tokens are read from it. What codex-show returns it writes to the transcript of its thread.
//
// A [Turn] is queued, runs, and ends, for which it makes its [Result]. It keeps the last 1,000 commands and refusals, each shortened, 10,000 files of patches, and 1 MiB of a
// message that is being written. What it changed is found by package changes. [Turn.So] is what it did until now,
// and [Schema] describes that as JSON.
package turn
