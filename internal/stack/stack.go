// Package stack keeps the stacks of goroutines small that wait for minutes, such as that of a turn. A stack grows to
// what the deepest call needs, and stays so.
package stack

import (
	"fmt"
	"runtime/debug"
)

// Apart runs f in a goroutine of its own, and returns when f does. A panic of f is the caller's, with the place in f.
func Apart(f func()) {
	var panicked string
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				panicked = fmt.Sprintf("%v\n%s", v, debug.Stack())
			}
		}()
		f()
	}()
	if <-done; panicked != "" {
		panic(panicked)
	}
}
