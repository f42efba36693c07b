//go:build !unix

package safefile

import "os"

// openFlags are 0: opening a file does not block on this system, where named pipes are not
// files.
const openFlags = 0

func readNow(f *os.File, p []byte) (int, error) { return f.Read(p) }
