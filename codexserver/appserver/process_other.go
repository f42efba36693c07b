//go:build !linux

package appserver

import "syscall"

func ownSession() *syscall.SysProcAttr { return nil }

// dieWithParent does nothing on this system. The process ends when its input does.
func dieWithParent() *syscall.SysProcAttr { return nil }

// sweep does nothing on this system.
func sweep(string) {}
