package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// FlagError reports a -c of the command line that is wrong.
type FlagError struct{ Err error }

// Error implements error.
func (e *FlagError) Error() string { return "-c " + e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *FlagError) Unwrap() error { return e.Err }

// place is a table that may set the keys of a configuration.
type place struct {
	file  string
	table []string // nil is the whole file
}

// locate adds to an error where its key is set: on the command line, or the file and the
// line. The text of such an error begins with the dotted key. A call that sets the key
// knows it. Of the places, an earlier one counts more.
func locate(err error, call, flags layer, places ...place) error {
	if err == nil {
		return nil
	}
	key, _, _ := strings.Cut(err.Error(), ": ")
	segments, splitErr := splitKey(key)
	switch {
	case splitErr != nil || holds(call, segments):
		return err
	case holds(flags, segments):
		return &FlagError{err}
	}
	// The line of a missing key is that of its table.
	for n := len(segments); n > 0; n-- {
		for _, p := range places {
			if line := keyLine(p.file, slices.Concat(p.table, segments[:n])); line > 0 {
				return fmt.Errorf("%s:%d: %w", p.file, line, err)
			}
		}
	}
	return fmt.Errorf("%s: %w", places[len(places)-1].file, err)
}

// holds reports whether a layer sets the key or a part of it.
func holds(l layer, segments []string) bool {
	for n := range segments {
		if v := At(l, segments[:n+1]...); !isTable(v) {
			return v != nil
		}
	}
	return true
}

// keyLine returns the first line of a file that sets a key, a table that contains it, or a part of
// it. It returns 0 if there is none.
func keyLine(file string, path []string) int {
	doc, _ := safefile.Read(file, maxFile) // whoever reads the file for its keys reports the error
	lines, _ := linesOf(doc)
	for _, l := range lines {
		if begins(l.path, path) || !l.header && begins(path, l.path) {
			return 1 + bytes.Count(doc[:l.start], []byte("\n"))
		}
	}
	return 0
}

func begins(path, with []string) bool {
	return len(with) <= len(path) && slices.Equal(path[:len(with)], with)
}
