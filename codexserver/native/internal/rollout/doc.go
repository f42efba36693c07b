// Package rollout keeps conversations in files, one line of JSON for each thing that
// happened, so that they can be read back and continued:
//
//	$CODEX_HOME/sessions/YYYY/MM/DD/rollout-YYYY-MM-DDThh-mm-ss-<id>.jsonl
//
// [Create] begins a file, a [Writer] appends to it, [Read] reads it back. Each line is
// one write: a process that is killed leaves whole lines and at most one torn one at the
// end, which Read drops and [Open] cuts off. A Writer has the file open for the time of a
// write alone. What it cannot write, on a full disk, it writes when it can.
//
// [Locks] lets one server at a time write to a rollout. Codex does not know them: it
// appends whenever it likes, which a Writer notices by the file's size.
package rollout
