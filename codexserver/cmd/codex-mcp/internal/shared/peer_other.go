//go:build !linux && !darwin

package shared

import (
	"errors"
	"net"
	"path/filepath"
)

// supported is false: the program then serves every client itself.
const supported = false

var errUnsupported = errors.New("this system is not supported")

func peer(*net.UnixConn) (user, pid int, err error) { return 0, 0, errUnsupported }

func alive(*net.UnixConn) (check func() bool, done func()) {
	return func() bool { return false }, func() {}
}

func (f *Folder) at(file string) string { return filepath.Join(f.path, file) }

func identity(int) (string, error) { return "", errUnsupported }

func confinement(int) (string, error) { return "", errUnsupported }

func parent(int) (int, error) { return 0, errUnsupported }

// Adopt fails: the system is not supported.
func Adopt() error { return errUnsupported }

// Namespaces fails: the system is not supported.
func Namespaces() (string, error) { return "", errUnsupported }
