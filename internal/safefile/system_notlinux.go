//go:build !linux

package safefile

import (
	"errors"
	"os"
	"syscall"
)

// InProc reports whether an open file or folder is in Linux's /proc.
func InProc(syscall.Conn) (bool, error) { return false, nil }

var errNoRoom = errors.New("no space left on the disk")

// roomIn returns allRoom: this system is asked by writing.
func roomIn(string) (int64, error) { return allRoom, nil }

// unnamed makes a file with a name: the reserve is not kept, so each Check writes it.
func unnamed(dir string) (f *os.File, named bool, err error) {
	f, err = os.CreateTemp(dir, ".tmp-*") // its mode is 0600
	return f, true, err
}

func allocate(f *os.File, size int) error {
	_, err := f.Write(noise(size))
	return err
}
