// Package repo reads git repositories, and makes git worktrees.
//
// # A private git folder
//
// Git does not see a repository's own git folder, whose configuration, hooks and attributes
// could name programs, except to make a worktree. This package reads that folder as data. It
// runs git on a private one, with a configuration of its own and the repository's objects by
// reference: no hook, filter, monitor, driver, alias or other program of the repository runs,
// no network is used, and nothing prompts. Git runs in a sandbox in which it writes only where its caller says,
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
// [Scratch.AddWorktree] makes a worktree by git's own command, on the repository itself. What its
// configuration names does not run: hooks, monitors and filters are off, git has no network, and it
// writes only to the worktree and the repository's git folder. The worktree is left to git and to
// those who commit there.
package repo
