//go:build !unix

package shared

import (
	"errors"
	"io/fs"
	"net"
	"syscall"
)

const noFollow = 0

func mine(fs.FileInfo) bool { return false }

func listen(*net.UnixListener) error { return errors.ErrUnsupported }

func ownSession() *syscall.SysProcAttr { return nil }
