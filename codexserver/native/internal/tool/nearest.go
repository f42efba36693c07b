package tool

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/text"
)

const (
	maxNearWalk = 20_000 // files that are looked at for a name
	maxNearText = 5_000  // texts that are compared
)

// missing reports a path where nothing is, with the nearest name.
func (t *Turn) missing(name string) error {
	f := &fault{what: name + " does not exist", next: "call it again with the right path; list and search find files."}
	if name == "" {
		return &fault{what: "path is empty", next: "give the path of a file, relative to the working folder."}
	}
	if f.quotes = t.nearestName(t.at(name)); f.quotes != "" {
		f.what += ". The nearest name is"
	}
	return f
}

// nearestName returns a path that resembles a missing one: that of a file of the working folder with its last name, or
// of what is beside its first missing name; or "".
func (t *Turn) nearestName(missing string) (found string) {
	walked, base := 0, filepath.Base(missing)
	walkFiles(context.Background(), t.Cwd, func(file string) bool {
		if strings.EqualFold(path.Base(file), base) {
			found = strings.ToValidUTF8(file, "\uFFFD")
		}
		walked++
		return walked < maxNearWalk && found == ""
	})
	if found != "" {
		return found
	}
	dir, want := filepath.Dir(missing), base
	for dir != filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			break
		}
		dir, want = filepath.Dir(dir), filepath.Base(dir)
	}
	root, err := t.openFolder(dir, "")
	if err != nil {
		return ""
	}
	defer root.Close()
	names, _, _ := entries(root)
	at := nearest(want, names)
	if at < 0 {
		return ""
	}
	found = filepath.Join(dir, names[at])
	if rel, ok := paths.Within(found, t.Cwd); ok {
		return filepath.ToSlash(rel)
	}
	return found
}

// maxCompared bounds the texts whose distance is computed, in bytes.
const maxCompared = 200

// nearest returns the index of the text that resembles one most, or -1.
func nearest(want string, texts []string) (at int) {
	plain := func(s string) string {
		s = strings.ToLower(strings.TrimSpace(strings.TrimSuffix(s, "/")))
		return s[:min(len(s), maxCompared)]
	}
	at, want = -1, plain(want)
	least := maxCompared
	for i, other := range texts[:min(len(texts), maxNearText)] {
		other = plain(other)
		most := max(2, max(len(other), len(want))/3)
		if d := text.Distance(other, want, most); d <= most && d < least && other != "" && want != "" {
			at, least = i, d
		}
	}
	return at
}
