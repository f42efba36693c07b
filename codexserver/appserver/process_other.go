//go:build !linux

package appserver

import "syscall"

func ownSession() *syscall.SysProcAttr { return nil }

// dieWithParent is not to be had here; the process ends when its input does.
func dieWithParent() *syscall.SysProcAttr { return nil }

// sweep finds nothing here beyond the process group.
func sweep(string) {}
