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
)

const (
	maxNear     = 5      // names and lines that an answer proposes
	maxNearWalk = 20_000 // files that are looked at for a name
	maxNearText = 5_000  // lines that are looked at for a text
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
	root, err := t.openFolder(dir)
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

// nearestNames returns paths that resemble a missing one: names beside its first missing one, and
// files of the working folder with its last name.
func (t *Turn) nearestNames(missing string) []string {
	type candidate struct {
		path     string
		distance int
	}
	var all []*candidate
	add := func(path, name, want string) {
		d := distance(strings.ToLower(name), strings.ToLower(want))
		if d <= max(2, len(want)/3) {
			all = append(all, &candidate{path, d})
		}
	}
	dir, want := filepath.Dir(missing), filepath.Base(missing)
	for dir != filepath.Dir(dir) {
		if _, err := os.Lstat(dir); err == nil {
			break
		}
		dir, want = filepath.Dir(dir), filepath.Base(dir)
	}
	if root, err := t.openFolder(dir); err == nil {
		names, _, _ := entries(root)
		root.Close()
		for _, name := range names {
			add(t.shown(filepath.Join(dir, name)), strings.TrimSuffix(name, "/"), want)
		}
	}
	walked := 0
	base := filepath.Base(missing)
	walkFiles(context.Background(), t.Cwd, func(file string) bool {
		if strings.EqualFold(path.Base(file), base) {
			all = append(all, &candidate{strings.ToValidUTF8(file, "\uFFFD"), 0})
		}
		walked++
		return walked < maxNearWalk
	})
	slices.SortFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.path, b.path))
	})
	var paths []string
	for _, c := range all {
		if !slices.Contains(paths, c.path) && len(paths) < maxNear {
			paths = append(paths, c.path)
		}
	}
	return paths
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

// distance returns how many letters of a must be changed, added or removed to get b.
func distance(a, b string) int {
	a, b = a[:min(len(a), maxCompared)], b[:min(len(b), maxCompared)]
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for k := range len(b) {
			change := diagonal
			if a[i] != b[k] {
				change++
			}
			diagonal = row[k+1]
			row[k+1] = min(change, row[k]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// nearestLines returns the numbers of lines that resemble the first line of a text, the nearest
// first.
func nearestLines(lines, text []string) []int {
	want := ""
	for _, line := range text {
		if want = strings.TrimSpace(line); want != "" {
			break
		}
	}
	if want == "" {
		return nil
	}
	type candidate struct{ number, distance int }
	var all []*candidate
	for i, line := range lines[:min(len(lines), maxNearText)] {
		line = strings.TrimSpace(line)
		longer := max(len(line), len(want))
		if line == "" || min(len(line), len(want))*2 < longer {
			continue
		}
		if d := distance(line, want); d*2 <= min(longer, maxCompared) {
			all = append(all, &candidate{i + 1, d})
		}
	}
	slices.SortFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.number, b.number))
	})
	var numbers []int
	for _, c := range all[:min(len(all), maxNear)] {
		numbers = append(numbers, c.number)
	}
	return numbers
}
