package paths

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxTwins is how many names of a folder are compared with one that it lacks.
const maxTwins = 10_000

// Existing returns a clean absolute path with the names that are there: a name that its folder lacks is the one that
// looks the same there, if exactly one does. So do a letter with its accent and two characters for both (NFC and NFD),
// and the spaces that a line break may not replace.
func Existing(path string) string {
	if !looksOtherwise(path) {
		return path
	}
	at, names := split(path)
	for i, name := range names {
		next := filepath.Join(at, name)
		if _, err := os.Lstat(next); errors.Is(err, fs.ErrNotExist) {
			twin := ""
			if looksOtherwise(name) {
				twin = twinOf(at, name)
			}
			if twin == "" {
				return filepath.Join(next, filepath.Join(names[i+1:]...))
			}
			next = filepath.Join(at, twin)
		}
		at = next
	}
	return at
}

// looksOtherwise reports whether another text may look the same.
func looksOtherwise(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || r >= utf8.RuneSelf })
}

// shape returns what names have in common that look the same.
func shape(name string) string {
	return norm.NFC.String(strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(name))
}

// twinOf returns the only name in a folder that looks like name, or "".
func twinOf(folder, name string) (twin string) {
	f, err := os.Open(folder + string(filepath.Separator) + ".") // with the dot, nothing but a folder is opened
	if err != nil {
		return ""
	}
	defer f.Close()
	want := shape(name)
	for left := maxTwins; left > 0; {
		there, err := f.Readdirnames(min(left, 1000))
		for _, other := range there {
			if shape(other) != want {
				continue
			}
			if twin != "" {
				return ""
			}
			twin = other
		}
		if left -= len(there); err != nil && !errors.Is(err, io.EOF) {
			return ""
		}
		if err != nil {
			break
		}
	}
	return twin
}
