// Package worktree makes a git worktree for each thread, so that several can work on one
// repository at the same time, and brings their work back.
//
//	Store.Create ──▶ Worktree ──▶ Status, Diff
//	                          ──▶ Plan ──▶ (a person is asked) ──▶ Plan.Apply
//	                          ──▶ Branch
//	                          ──▶ Discard ──▶ LossError ──▶ Discard(token)
//	Store.Find: a worktree of an earlier process        Store.Recover: after a kill
//
// # Three folders
//
// The worktree itself is all that a thread's commands may write. Git's own folder for it
// lies in the repository, as for any worktree, and serves the commands and people that
// look around in there. This package reads neither that folder nor the worktree's .git
// but for where HEAD is: a command that got past the sandbox can have changed both. Its
// state is its record, and it runs git on a git folder of its own, next to the record: a
// configuration of ours, the repository's objects by reference, and an index. So no hook,
// filter, monitor, driver, include or alias of the repository or of a command counts.
// Files that need a filter, such as large ones kept elsewhere, are left out and said: see
// [Skip].
//
// # Bringing work back
//
// The worktree's content is compared with what it began with, file by file.
// [Worktree.Plan] merges each changed file with the caller's as it is now. Lines that
// both have changed, and all else that is in doubt, are a [*ConflictError], and nothing
// is written. [Plan.Apply] writes all files or none. It first notes in a journal what was
// there: when the process is killed in between, the next call about the same tree puts
// everything back.
//
// [Worktree.Branch] makes a commit of the content in the repository, on a branch of its
// own. [Worktree.Discard] asks back when something would be lost.
package worktree
