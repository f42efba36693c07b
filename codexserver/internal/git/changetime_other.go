//go:build !linux

package git

import (
	"io/fs"
	"time"
)

// changeTime returns the zero time on this system.
func changeTime(fs.FileInfo) time.Time { return time.Time{} }
