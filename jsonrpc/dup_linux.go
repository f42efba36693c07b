package jsonrpc

import "syscall"

// dupOnto makes descriptor to the same as from. Not every Linux has dup2.
func dupOnto(from, to int) error { return syscall.Dup3(from, to, 0) }
