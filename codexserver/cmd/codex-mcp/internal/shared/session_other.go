//go:build !unix

package shared

import (
	"io/fs"
	"syscall"
)

const noFollow = 0

func mine(fs.FileInfo) bool { return false }

func ownSession() *syscall.SysProcAttr { return nil }
