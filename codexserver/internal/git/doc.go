// Package git runs the installed git, confined, and reads git repositories with it.
//
// # A git folder of its own
//
// Git does not see a repository's own git folder, whose configuration, hooks and attributes could name programs, except
// to make a worktree and to move the branch of one. It runs on a mirror: a git folder in [Scratch].Dir with a configuration of this package, a copy
// of the index, and the repository's refs and objects by reference. So no hook, filter, monitor, driver, helper, alias
// or other program of the repository or the user runs, nothing is fetched, and nothing prompts. Of both configurations
// only values that name no program are taken, as git config lists them: those of the system and the user with the files
// that they include, the repository's own without, which [Before.Gaps] says. [Head] takes the commit and the branch as
// data where git's files are as git writes them.
//
// Git runs in a sandbox all the same, in which it has no network and writes only the mirror, with
// fewer variables than commands get. Where there is no sandbox, git does not run.
//
// # What a turn changed
//
// [Look] asks git status on the copied index what differs from it and what is new, and keeps the content of these files.
// [Before.Compare] asks the same again. Git then compares two folders with those files alone that may have changed in between:
// what they were, as they were kept or as git makes them of the index, and what they are. The copy has the time of the index, so
// git reads what may have changed in the second in which the index was written. What git cannot see, since it compares times in
// seconds and looks past line ends, shows by exact times, where it may be. Large files are compared by size and times. Nobody
// looks into submodules, other repositories and ignored files: [Before.Gaps] names them. No filter and no encoding counts. A file
// that was not as git would make it has no section in the diff, and neither has one that git apply, which is tried, would not make
// as it is. Each look takes at most three times as long as git status.
//
// # Worktrees
//
// [Scratch.AddWorktree] makes a worktree by git's own command, on the repository itself. What its configuration names
// does not run: hooks, monitors and filters are off, git has no network, and it writes only to the worktree and the
// repository's git folder. A [Record] beside it says what it is, whatever a command writes into the worktree.
//
// [Worktree.Commit] commits there what git status names, on the branch of the worktree. Git runs on a mirror, and reads the
// changed files from copies. It writes the objects; then the index of the worktree is replaced, and last git moves the
// branch, if that is still where it was. A commit that a kill cuts short is finished by [Scratch.Mend]. What a filter would
// convert is left out, and what [CommitOptions] withhold.
//
// [Worktree.Merge] merges its branch with HEAD of the working tree that it was made for: on the mirror, in memory, with the
// strategy and the attributes that git merge takes, and none of the user's drivers. It says what the files would have, as git
// would write them. Who writes them compares first what is there, with [Merge.Dirty].
package git
