// Package repo reads git repositories, and makes git worktrees for threads.
//
// # A private git folder
//
// Git never sees a repository's own git folder, whose configuration, hooks and attributes
// could name programs. This package reads that folder as data. It runs git on a private one,
// with a configuration of its own and the repository's objects by reference: no hook, filter,
// monitor, driver, alias or other program of the repository runs, no network is used, and
// nothing prompts. Git runs in a sandbox in which it writes only where its caller says,
// because the user's own configuration may name programs, and may include files that
// commands can write.
//
// [Read] and [ChangesOf] describe a repository. A [Survey] compares a folder
// with itself at a later moment.
//
// # A look without git
//
// A [Snapshot] first looks at the tree without git, by the repository's index (still.go). It keeps the few
// files that differ from the index or are new (held.go), and decides what is ignored if every pattern
// is a plain one (ignore.go). If nothing is different after the turn, git does not run. Anything
// unusual it leaves to git, whose answer is the same; TestStillAsByGit compares both.
//
// # Worktrees
//
// A [Store] makes a worktree for each thread, so that several can work on one repository at
// the same time, and brings their work back.
//
//	Store.Create ──▶ Worktree ──▶ Status
//	                          ──▶ Plan ──▶ (a person is asked) ──▶ Plan.Apply
//	                          ──▶ Branch
//	                          ──▶ Discard ──▶ LossError ──▶ Discard(token)
//	Store.Find: a worktree of an earlier process        Store.Recover: after a kill
//
// # The folders of a worktree
//
// A thread's commands may write only to the worktree itself. As for any worktree, git has
// a folder of its own for it in the repository, for commands and people that use git
// there. A command that escaped the sandbox could have changed this folder and the
// worktree's .git, so this package reads only the position of HEAD from them.
//
// The state of a worktree is in its record. This package runs git on a third folder, next
// to the record, with its own configuration, the repository's objects by reference, and an
// index. So no hook, filter, monitor, driver, include or alias of the repository or of a
// command has an effect. Files that need a filter, such as large ones stored elsewhere,
// are left out and listed, see [Skip].
//
// # Bringing work back
//
// The worktree's content is compared with its first content, file by file. [Worktree.Plan]
// merges each changed file with the caller's current one. If both have changed the same
// lines, or anything else is in doubt, it returns a [*ConflictError] and writes nothing.
// [Plan.Apply] first sets a mark in the record, and removes it after the last file. If the
// process is killed meanwhile, [Store.Unfinished] names the tree and its branch. A new plan
// has only the files that are not yet written.
//
// [Worktree.Branch] makes a commit of the content on a new branch in the repository.
// [Worktree.Discard] requires a confirmation if work would be lost.
package repo
