//go:build !unix

package taskfile

import (
	"io/fs"
	"os"
)

// isOwn is for systems whose modes say who owns and may write a file.
func isOwn(fs.FileInfo) bool { return true }

// syncFolder does nothing: folders cannot be synced here.
func syncFolder(*os.Root) error { return nil }
