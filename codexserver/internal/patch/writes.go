package patch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Write is what a plan does to one file. Before and After are the SHA-256 of the content, in
// hex, "" for no file.
type Write struct {
	// Path is absolute.
	Path          string
	Before, After string
}

// Writes returns what Apply does, in its order.
func (p *Plan) Writes() (all []Write) {
	for _, file := range p.files {
		if !equal(file.before, file.after) || file.added {
			all = append(all, Write{Path: file.path, Before: sum(file.before), After: sum(file.after)})
		}
	}
	return all
}

func sum(content *string) string {
	if content == nil {
		return ""
	}
	s := sha256.Sum256([]byte(*content))
	return hex.EncodeToString(s[:])
}

// State is what has become of a [Write].
type State int

// The states of a write. A file that is the same before and after is done.
const (
	Done State = iota
	Undone
	// Neither means that the file has another content, such as a part of the new one.
	Neither
)

// State looks at the file. It is Neither for a file that cannot be read.
func (w Write) State() State {
	var now *string
	text, err := safefile.Read(w.Path, maxFileSize)
	switch {
	case err == nil:
		s := string(text)
		now = &s
	case !errors.Is(err, fs.ErrNotExist):
		return Neither
	}
	switch sum(now) {
	case w.After:
		return Done
	case w.Before:
		return Undone
	}
	return Neither
}
