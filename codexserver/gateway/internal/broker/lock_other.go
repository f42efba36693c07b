//go:build !unix

package broker

import "os"

// lock opens a file. This system does not lock it.
func lock(path string) (*os.File, error) { return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) }
