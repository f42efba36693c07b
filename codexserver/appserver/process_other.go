//go:build !linux

package appserver

import "syscall"

// dieWithParent is not to be had here; the process ends when its input does.
func dieWithParent() *syscall.SysProcAttr { return nil }

// sweep finds nothing here beyond the process group.
func sweep(string) {}
