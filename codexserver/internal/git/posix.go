package git

import "runtime"

// isPosix is false on systems where a file's mode does not show who may write to it.
const isPosix = runtime.GOOS != "windows"
