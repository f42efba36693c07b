package report

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/gitinfo"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// maxPatched bounds the files of patches that are remembered.
const maxPatched = 10_000

// patches are the changes of the turn's patches, by absolute path. The zero value is
// ready.
type patches struct {
	open    map[string][]gitinfo.Change // by call
	files   map[string]gitinfo.Change
	omitted int
}

// begin returns the absolute paths of the files, with slashes.
func (p *patches) begin(m protocol.PatchApplyBegin) (paths []string) {
	if p.open == nil {
		p.open, p.files = map[string][]gitinfo.Change{}, map[string]gitinfo.Change{}
	}
	var list []gitinfo.Change
	for _, path := range slices.Sorted(maps.Keys(m.Changes)) {
		c := patched(path, m.Changes[path])
		list = append(list, c)
		if paths = append(paths, filepath.ToSlash(c.Path)); c.From != "" {
			paths = append(paths, filepath.ToSlash(c.From))
		}
	}
	p.open[m.CallID] = list
	return paths
}

// of returns the change of the file at a path, or nil.
func (p *patches) of(path string) *gitinfo.Change {
	c, ok := p.files[path]
	if !ok {
		return nil
	}
	return &c
}

func patched(path string, f protocol.FileChange) gitinfo.Change {
	c := gitinfo.Change{Path: path, Kind: gitinfo.Update, Lines: &gitinfo.Lines{}}
	switch {
	case f.Add != nil:
		c.Kind, c.Lines.Added = gitinfo.Add, countLines(f.Add.Content)
	case f.Delete != nil:
		c.Kind, c.Lines.Removed = gitinfo.Delete, countLines(f.Delete.Content)
	case f.Update != nil:
		for line := range strings.Lines(f.Update.UnifiedDiff) {
			switch line[0] {
			case '+':
				c.Lines.Added++
			case '-':
				c.Lines.Removed++
			}
		}
		if to := f.Update.MovePath; to != nil && *to != path {
			c.Kind, c.From, c.Path = gitinfo.Rename, path, *to
		}
	}
	return c
}

func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

func (p *patches) end(m protocol.PatchApplyEnd) {
	list := p.open[m.CallID]
	delete(p.open, m.CallID)
	if !m.Success {
		return
	}
	for _, c := range list {
		p.add(c)
	}
}

// add merges a change with an earlier one of the same file.
func (p *patches) add(c gitinfo.Change) {
	before, again := p.files[cmp.Or(c.From, c.Path)]
	if again {
		delete(p.files, before.Path)
		c.Lines.Added += before.Lines.Added
		c.Lines.Removed += before.Lines.Removed
		switch {
		case before.Kind == gitinfo.Add && c.Kind == gitinfo.Delete:
			return
		case before.Kind == gitinfo.Add:
			c.Kind, c.From = gitinfo.Add, ""
		case before.Kind == gitinfo.Delete && c.Kind == gitinfo.Add:
			c.Kind = gitinfo.Update
		case before.Kind == gitinfo.Rename && c.Kind == gitinfo.Delete:
			c.Path = before.From
		case before.Kind == gitinfo.Rename:
			c.Kind, c.From = gitinfo.Rename, before.From
		}
	}
	if len(p.files) == maxPatched {
		p.omitted++
		return
	}
	p.files[c.Path] = c
}

// changes returns the changes, sorted by path. Paths below dir are relative to it.
func (p *patches) changes(dir string) []gitinfo.Change {
	list := make([]gitinfo.Change, 0, len(p.files))
	for _, c := range p.files {
		c.Path = below(dir, c.Path)
		if c.From != "" {
			c.From = below(dir, c.From)
		}
		list = append(list, c)
	}
	slices.SortFunc(list, byPath)
	return list
}

// below returns a path with slashes, relative to dir if it is below it.
func below(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); dir != "" && err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return filepath.ToSlash(path)
}

// elsewhere returns the changes of files that the snapshot does not cover, sorted by path.
func (p *patches) elsewhere(covered func(path string) bool) (list []gitinfo.Change) {
	for path, c := range p.files {
		if !covered(path) {
			c.Path, c.From = filepath.ToSlash(path), filepath.ToSlash(c.From)
			list = append(list, c)
		}
	}
	slices.SortFunc(list, byPath)
	return list
}

func byPath(a, b gitinfo.Change) int { return strings.Compare(a.Path, b.Path) }
