//go:build unix && !linux

package jsonrpc

import "syscall"

// dupOnto makes descriptor to the same as from.
func dupOnto(from, to int) error { return syscall.Dup2(from, to) }
