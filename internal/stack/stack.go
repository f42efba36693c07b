// Package stack keeps the stacks of goroutines small that wait for minutes, such as that of a turn, and calls what may
// panic. A stack grows to what the deepest call needs, and stays so.
package stack

import (
	"errors"
	"fmt"
	"log/slog"
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
		Grow()
		f()
	}()
	if <-done; panicked != "" {
		panic(panicked)
	}
}

// Grow grows the stack of the goroutine to 16 KiB, which reading the configuration or encoding a request needs. If it grows
// there, each of some twenty frames is moved, several times, by tables that are spread over the whole program.
func Grow() { grow(0) }

//go:noinline
func grow(n int) byte {
	var room [9 << 10]byte
	return room[n%len(room)]
}

// ErrPanicked is the error of a function that panicked.
var ErrPanicked = errors.New("it panicked")

// Guard calls a function, which has a name for people. If it panics, Guard logs the panic, unless log is nil, and returns
// [ErrPanicked].
func Guard(log *slog.Logger, name string, call func() error) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if err = ErrPanicked; log != nil {
			log.Error("panic", "in", name, "value", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	return call()
}
