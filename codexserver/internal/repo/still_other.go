//go:build !linux

package repo

import (
	"context"
	"io/fs"
)

// isStill returns false, because it is not known on this system when an inode has changed.
func isStill(context.Context, string, index, map[string]map[string]bool, *finds) bool { return false }

// statEntry is not needed on this system.
func statEntry(string, fs.FileInfo) (indexed, []byte, bool) { return indexed{}, nil, false }
