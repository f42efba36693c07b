package tool

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/text"
)

const (
	maxNear     = 5      // names and lines that an answer proposes
	maxNearWalk = 20_000 // files that are looked at for a name
	maxNearText = 5_000  // texts that are compared
)

// missing reports a path where nothing is, with the nearest names.
func (t *Turn) missing(name string) error {
	f := &fault{what: name + " does not exist", next: "call it again with the right path; list and search find files."}
	if name == "" {
		return &fault{what: "path is empty", next: "give the path of a file, relative to the working folder."}
	}
	if near := t.nearestNames(t.at(name)); near != nil {
		f.what += ". The nearest names are"
		f.quotes = strings.Join(near, "\n")
	}
	return f
}

// names returns the names in a folder for an answer, "" if it cannot be read.
func (t *Turn) names(dir string) string {
	root, err := t.openFolder(dir, "")
	if err != nil {
		return ""
	}
	defer root.Close()
	names, _, err := entries(root)
	if err != nil {
		return ""
	}
	left := len(names) - 20
	text := strings.Join(names[:min(len(names), 20)], "\n")
	if left > 0 {
		text += fmt.Sprintf("\n(%d more)", left)
	}
	return text
}

// nearestNames returns paths that resemble a missing one: files of the working folder with its last
// name, and names beside its first missing one.
func (t *Turn) nearestNames(missing string) (paths []string) {
	walked, base := 0, filepath.Base(missing)
	walkFiles(context.Background(), t.Cwd, func(file string) bool {
		if strings.EqualFold(path.Base(file), base) {
			paths = append(paths, strings.ToValidUTF8(file, "\uFFFD"))
		}
		walked++
		return walked < maxNearWalk && len(paths) < maxNear
	})
	dir, want := filepath.Dir(missing), base
	for dir != filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			break
		}
		dir, want = filepath.Dir(dir), filepath.Base(dir)
	}
	if root, err := t.openFolder(dir, ""); err == nil {
		names, _, _ := entries(root)
		root.Close()
		for _, i := range nearest(want, names) {
			paths = append(paths, t.shown(filepath.Join(dir, names[i])))
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	return paths[:min(len(paths), maxNear)]
}

// shown returns a path relative to the working folder, if it is below it.
func (t *Turn) shown(path string) string {
	if rel, ok := paths.Within(path, t.Cwd); ok {
		return filepath.ToSlash(rel)
	}
	return path
}

// maxCompared bounds the texts whose distance is computed, in bytes.
const maxCompared = 200

// nearest returns the indices of texts that resemble one, the nearest first.
func nearest(want string, texts []string) (at []int) {
	plain := func(s string) string {
		s = strings.ToLower(strings.TrimSpace(strings.TrimSuffix(s, "/")))
		return s[:min(len(s), maxCompared)]
	}
	distances := map[int]int{}
	want = plain(want)
	for i, other := range texts[:min(len(texts), maxNearText)] {
		other = plain(other)
		most := max(2, max(len(other), len(want))/3)
		if d := text.Distance(other, want, most); d <= most && other != "" && want != "" {
			distances[i] = d
			at = append(at, i)
		}
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(distances[a], distances[b]) })
	return at[:min(len(at), maxNear)]
}
