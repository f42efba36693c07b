//go:build !linux && !darwin

package shared

import (
	"io/fs"
	"net"
	"path/filepath"
	"syscall"
)

// supported is false: the program then serves every client itself.
const supported = false

const noFollow = 0

func mine(fs.FileInfo) bool { return false }

func peer(*net.UnixConn) (user, pid int, err error) { return 0, 0, errUnsupported }

func alive(*net.UnixConn) (check func() bool, done func()) {
	return func() bool { return false }, func() {}
}

func (f *Folder) at(file string) string { return filepath.Join(f.path, file) }

func look(int) (parent int, identity string, err error) { return 0, "", errUnsupported }

func confinement(int) (string, error) { return "", errUnsupported }

func ownSession() *syscall.SysProcAttr { return nil }

// adopt fails: the system is not supported.
func adopt() error { return errUnsupported }

// Namespaces fails: the system is not supported.
func Namespaces() (string, error) { return "", errUnsupported }
