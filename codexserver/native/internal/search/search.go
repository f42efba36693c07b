package search

import (
	"cmp"
	"context"
	"path"
	"sort"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// limit is the number of files of one root in a result.
const limit = 50

// Files returns the files below roots whose paths match query. The best match is first;
// equal ones are sorted by path. Each root is the absolute path of a folder; other roots
// have no files. An empty query matches nothing. When ctx ends, Files returns the matches
// found so far.
func Files(ctx context.Context, query string, roots []string) []protocol.FuzzyFile {
	files := []protocol.FuzzyFile{}
	if query == "" {
		return files
	}
	p := parsePattern(query)
	for _, root := range roots {
		files = append(files, p.best(ctx, root)...)
	}
	sort.SliceStable(files, func(i, j int) bool {
		a, b := &files[i], &files[j]
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Path, b.Path)) < 0
	})
	return files
}

// hit is a path that matches.
type hit struct {
	path  string
	score int
}

// best returns the best files of one root.
func (p *pattern) best(ctx context.Context, root string) []protocol.FuzzyFile {
	var hits []hit
	cut := func() {
		sort.SliceStable(hits, func(i, j int) bool {
			a, b := &hits[i], &hits[j]
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.path, b.path)) < 0
		})
		hits = hits[:min(len(hits), limit)]
	}
	Walk(ctx, root, func(file string) {
		file = strings.ToValidUTF8(file, "\uFFFD") // it becomes JSON
		score, ok := p.match(file, nil)
		if !ok {
			return
		}
		if hits = append(hits, hit{file, score}); len(hits) == 100*limit {
			cut()
		}
	})
	cut()
	files := make([]protocol.FuzzyFile, len(hits))
	for i, h := range hits {
		indices := []uint32{}
		p.match(h.path, &indices)
		files[i] = protocol.FuzzyFile{Root: root, Path: h.path, FileName: path.Base(h.path), Score: uint32(h.score), Indices: indices}
	}
	return files
}
