//go:build unix

package testenv

import "syscall"

// usualModes lets others read what this process makes.
func usualModes() { syscall.Umask(0o022) }
