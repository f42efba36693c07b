package changes

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// maxPatched bounds the files of patches that are remembered.
const maxPatched = 10_000

// Patches are the changes of a turn's patches, by absolute path. The zero value is ready.
type Patches struct {
	open    map[string][]git.Change // by call
	files   map[string]git.Change
	omitted int
}

// Begin records the begin of a patch.
func (p *Patches) Begin(m protocol.PatchApplyBegin) {
	if p.open == nil {
		p.open, p.files = map[string][]git.Change{}, map[string]git.Change{}
	}
	var list []git.Change
	for _, path := range slices.Sorted(maps.Keys(m.Changes)) {
		list = append(list, patched(path, m.Changes[path]))
	}
	p.open[m.CallID] = list
}

// of returns the change of the file at a path, or nil.
func (p *Patches) of(path string) *git.Change {
	c, ok := p.files[path]
	if !ok {
		return nil
	}
	return &c
}

func patched(path string, f protocol.FileChange) git.Change {
	c := git.Change{Path: path, Kind: git.ChangeKind(f.Kind()), Lines: &git.Lines{}}
	c.Lines.Added, c.Lines.Removed = f.Lines()
	if to := f.MovedTo(); to != "" && to != path {
		c.Kind, c.From, c.Path = git.Rename, path, to
	}
	return c
}

// End records the end of a patch.
func (p *Patches) End(m protocol.PatchApplyEnd) {
	list := p.open[m.CallID]
	delete(p.open, m.CallID)
	if !m.Success {
		return
	}
	for _, c := range list {
		p.add(c)
	}
}

// Made records a file that the engine made otherwise, whose lines nobody counted.
func (p *Patches) Made(path string) {
	if p.files == nil {
		p.open, p.files = map[string][]git.Change{}, map[string]git.Change{}
	}
	if p.of(path) == nil {
		p.add(git.Change{Path: path, Kind: git.Add})
	}
}

// add merges a change with an earlier one of the same file.
func (p *Patches) add(c git.Change) {
	before, again := p.files[cmp.Or(c.From, c.Path)]
	if again && before.Lines == nil {
		before.Lines = &git.Lines{}
	}
	if again {
		delete(p.files, before.Path)
		c.Lines.Added += before.Lines.Added
		c.Lines.Removed += before.Lines.Removed
		switch {
		case before.Kind == git.Add && c.Kind == git.Delete:
			return
		case before.Kind == git.Add:
			c.Kind, c.From = git.Add, ""
		case before.Kind == git.Delete && c.Kind == git.Add:
			c.Kind = git.Update
		case before.Kind == git.Rename && c.Kind == git.Delete:
			c.Path = before.From
		case before.Kind == git.Rename:
			c.Kind, c.From = git.Rename, before.From
		}
	}
	if len(p.files) == maxPatched {
		p.omitted++
		return
	}
	p.files[c.Path] = c
}

// changes returns the changes, sorted by path. Paths below dir are relative to it.
func (p *Patches) changes(dir string) []git.Change {
	list := make([]git.Change, 0, len(p.files))
	for _, c := range p.files {
		c.Path = below(dir, c.Path)
		if c.From != "" {
			c.From = below(dir, c.From)
		}
		list = append(list, c)
	}
	git.SortChanges(list)
	return list
}

// below returns a path with slashes, relative to dir if it is below it.
func below(dir, path string) string {
	if rel, ok := paths.Within(path, dir); ok && dir != "" {
		path = rel
	}
	return filepath.ToSlash(path)
}

// elsewhere returns the changes of files that the snapshot does not cover, sorted by path.
func (p *Patches) elsewhere(covered func(path string) bool) (list []git.Change) {
	for path, c := range p.files {
		if !covered(path) {
			c.Path, c.From = filepath.ToSlash(path), filepath.ToSlash(c.From)
			list = append(list, c)
		}
	}
	git.SortChanges(list)
	return list
}
