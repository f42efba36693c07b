//go:build !linux

package safefile

import (
	"errors"
	"syscall"
)

// InProc reports whether an open file or folder is in Linux's /proc.
func InProc(syscall.Conn) (bool, error) { return false, nil }

// nameOf returns "": these systems do not say it in one way.
func nameOf(*File) string { return "" }

var errNoRoom = errors.New("no space left on the disk")

// roomIn returns allRoom: this system is asked by writing.
func roomIn(string) (int64, error) { return allRoom, nil }

// tellsRoom is false, so the reserve is not kept: each Check writes it.
const tellsRoom = false
