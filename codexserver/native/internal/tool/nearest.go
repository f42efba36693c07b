package tool

import (
	"context"
	"path"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/text"
)

// maxNear bounds the texts that are compared, and maxCompared each of them in bytes.
const maxNear, maxCompared = 5_000, 200

// missing reports a path where nothing is, with the file of the working folder whose name is nearest.
func (t *Turn) missing(name string) error {
	if name == "" {
		return &fault{what: "path is empty", next: "give the path of a file, relative to the working folder."}
	}
	f := &fault{what: name + " does not exist", next: "call it again with the right path; list and search find files."}
	var files, names []string
	walkFiles(context.Background(), t.Cwd, func(file string) bool {
		files, names = append(files, file), append(names, path.Base(file))
		return len(files) < maxNear
	})
	if at := nearest(filepath.Base(name), names); at >= 0 {
		f.what += ". The nearest name is"
		f.quotes = strings.ToValidUTF8(files[at], "\uFFFD")
	}
	return f
}

// nearest returns the index of the text that resembles one most, or -1.
func nearest(want string, texts []string) (at int) {
	plain := func(s string) string {
		s = strings.ToLower(strings.TrimSpace(s))
		return s[:min(len(s), maxCompared)]
	}
	at, want = -1, plain(want)
	least := maxCompared
	for i, other := range texts[:min(len(texts), maxNear)] {
		other = plain(other)
		most := max(2, max(len(other), len(want))/3)
		if d := text.Distance(other, want, most); d <= most && d < least && other != "" && want != "" {
			at, least = i, d
		}
	}
	return at
}
