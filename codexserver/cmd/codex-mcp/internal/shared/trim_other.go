//go:build !linux

package shared

import "runtime/debug"

// Trim gives back the free part of the heap, which this process needed to start.
func Trim() { debug.FreeOSMemory() }
