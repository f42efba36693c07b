// Package rollout keeps conversations in files, so that they can be continued. Each step
// of a conversation is one line of JSON:
//
//	$CODEX_HOME/sessions/YYYY/MM/DD/rollout-YYYY-MM-DDThh-mm-ss-<id>.jsonl
//
// [Create] makes a file, a [Writer] appends to it, [Read] reads it. Each line is one
// write: a process that is killed leaves whole lines and at most one torn line at the end,
// which Read skips and [Writer.Take] cuts off. A Writer keeps lines that it cannot write, such as on a full disk, and
// writes them later.
//
// A [safefile.Mirror] also keeps the lines elsewhere. [Writer.Sync] waits until it has them.
//
// [Writer.Claim] locks the file, so that one server at a time runs a turn. Codex ignores the lock and may
// append at any time; a Writer detects that by the file's size.
package rollout
