//go:build !unix

package taskfile

import (
	"io/fs"
	"os"
)

// isOwn returns true: on this system a mode does not show who may write to a file.
func isOwn(fs.FileInfo) bool { return true }

// syncFolder does nothing: folders cannot be synced on this system.
func syncFolder(*os.Root) error { return nil }
