package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// readKeys reads in the background, so that a caller can wait for a key and something else at the
// same time. The goroutine ends with r: a read from a terminal cannot be cancelled.
func readKeys(r io.Reader) <-chan rune {
	keys := make(chan rune)
	go func() {
		defer close(keys)
		for in := bufio.NewReader(r); ; {
			key, _, err := in.ReadRune()
			if err != nil {
				return
			}
			keys <- key
		}
	}()
	return keys
}

// raw lets the terminal on standard input, if it is one, pass on keys at once.
func raw() (restore func()) {
	fd := int(os.Stdin.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return func() {}
	}
	return func() {
		_ = term.Restore(fd, before) // an error has no remedy
		fmt.Println()
	}
}
