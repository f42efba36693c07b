package worktree

import "runtime"

// isPosix is false where the bits of a file's mode do not say who may write it.
const isPosix = runtime.GOOS != "windows"
