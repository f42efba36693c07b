package page

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/paths"
	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

// file is what happens to one file.
type file struct {
	// Kind is "add", "delete" or "update".
	Kind string `json:"kind"`
	// Path is relative to the folder if it lies in it.
	Path string `json:"path"`
	// MoveTo is the new path if an update moves the file.
	MoveTo string `json:"moveTo,omitzero"`
	// Outside is true when Path or MoveTo lies outside the folder.
	Outside bool `json:"outside,omitzero"`
	// Added and Removed count lines.
	Added   int `json:"added"`
	Removed int `json:"removed"`
	// Diff has the lines of the file, each after "+", "-" or " ".
	Diff string `json:"diff,omitzero"`
	// Cut is true when a part of the diff is missing.
	Cut bool `json:"cut,omitzero"`
}

// viewFiles returns the files of a patch, sorted by path. If cwd is "", no file counts as
// outside.
func viewFiles(changes map[string]protocol.FileChange, cwd string) []file {
	files := make([]file, 0, len(changes))
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		c := changes[name]
		f := file{Kind: "update", Diff: c.Diff()}
		f.Path, f.Outside = place(name, cwd)
		f.Added, f.Removed = c.Lines()
		switch {
		case c.Add != nil:
			f.Kind = "add"
		case c.Delete != nil:
			f.Kind = "delete"
		case c.Update != nil && c.Update.MovePath != nil:
			var outside bool
			f.MoveTo, outside = place(*c.Update.MovePath, cwd)
			f.Outside = f.Outside || outside
		}
		files = append(files, f)
	}
	return files
}

// place returns a path relative to the folder, and whether it lies outside of it. It
// judges names and does not follow symbolic links.
func place(name, cwd string) (string, bool) {
	name = filepath.Clean(name)
	if cwd == "" {
		return name, false
	}
	if !filepath.IsAbs(name) {
		return name, !filepath.IsLocal(name)
	}
	if rel, ok := paths.Within(name, cwd); ok {
		return rel, false
	}
	return name, true
}

func sizeOf(files []file) int {
	n := 0
	for _, f := range files {
		n += len(f.Path) + len(f.MoveTo) + len(f.Diff) + 64
	}
	return n
}

// clipFiles keeps about most bytes of paths and diffs, and at least 100 files.
func clipFiles(files []file, most int) []file {
	var kept []file
	for _, f := range files {
		f.Path, f.MoveTo = utf8text.Brief(f.Path, maxBrief), utf8text.Brief(f.MoveTo, maxBrief)
		diff := utf8text.Brief(f.Diff, max(0, most))
		f.Cut, f.Diff = len(diff) < len(f.Diff), diff
		most -= sizeOf([]file{f})
		if most < 0 && len(kept) >= 100 {
			break
		}
		kept = append(kept, f)
	}
	return kept
}

// showFiles returns a copy with hidden characters made visible.
func showFiles(files []file) []file {
	shown := slices.Clone(files)
	for i, f := range shown {
		shown[i].Path, shown[i].MoveTo, shown[i].Diff = path(f.Path), path(f.MoveTo), elicit.ShowText(f.Diff)
	}
	return shown
}

// path returns a path on one line, quoted where it has to be.
func path(s string) string {
	if s == "" {
		return ""
	}
	return elicit.ShowCommand([]string{s})
}

// line returns text on one line.
func line(s string) string {
	return elicit.OneLine(s, 0)
}
