//go:build !unix

package safefile

import (
	"errors"
	"io/fs"
	"os"
)

// SyncFolder does nothing: folders cannot be synced on this system.
func SyncFolder(*os.Root) error { return nil }

// IsFull returns false: a full disk counts as one that cannot be reached.
func IsFull(error) bool { return false }

// openFlags are 0: opening a file does not block on this system, where named pipes are not
// files.
const openFlags = 0

func readNow(f *os.File, p []byte) (int, error) { return f.Read(p) }

// private refuses anything but a regular file. On this system the folder decides who may
// read it.
func private(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("want a regular file")
	}
	return nil
}

// owned accepts every file, because the folder decides.
func owned(fs.FileInfo) error { return nil }

// IsOwn returns true: on this system a mode does not show who may write to a file.
func IsOwn(fs.FileInfo) bool { return true }
