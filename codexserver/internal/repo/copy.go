package repo

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/safefile"
)

// maxIndex is the size of the largest index in bytes.
const maxIndex = 1 << 30

// CopyIndex copies the index of a git folder, which has one part or two.
func CopyIndex(to, from string) error {
	names, err := filepath.Glob(filepath.Join(escapeGlob(from), "sharedindex.*"))
	if err != nil {
		return err
	}
	for _, name := range append(names, "index") {
		if err := CopyFile(to, from, filepath.Base(name), maxIndex); err != nil {
			return err
		}
	}
	return nil
}

// escapeGlob makes a path match itself in a pattern.
func escapeGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // patterns have no escape here, and git's folders no such names
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// CopyFile copies the regular file name from one folder to another, with its time, because
// git compares the time of the index with those of the files. A missing file is ignored.
// A file of more than most bytes is an error.
func CopyFile(to, from, name string, most int64) (err error) {
	source, err := safefile.Open(filepath.Join(from, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	copied, err := os.OpenFile(filepath.Join(to, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(copied, io.LimitReader(source, most+1))
	if err == nil && n > most {
		err = &safefile.SizeError{Path: filepath.Join(from, name), Max: most}
	}
	if err := errors.Join(err, copied.Close()); err != nil {
		return err
	}
	return os.Chtimes(copied.Name(), time.Time{}, source.Info().ModTime())
}
