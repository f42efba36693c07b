package audit

import (
	"errors"
	"os"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// mark locks a byte of the file until it is closed, so that [alive] knows its writer.
func mark(f *os.File, writer string) error {
	err := safefile.LockAt(f, place(writer))
	if errors.Is(err, safefile.ErrLocked) {
		return nil // by another process: what this one leaves is closed later
	}
	return err
}

// unmark ends what mark began.
func unmark(f *os.File, writer string) error { return safefile.UnlockAt(f, place(writer)) }

// alive reports whether the writer has the file at path, or the one that it has replaced, open. In doubt it
// lives.
func alive(path, writer string) bool {
	for _, name := range []string{path, path + ".1"} {
		f, err := safefile.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return true
		}
		err = safefile.ShareAt(f, place(writer))
		if _ = f.Close(); err != nil {
			return true
		}
	}
	return false
}
