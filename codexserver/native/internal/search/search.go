package search

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/sahilm/fuzzy"
)

// limit is the number of files of one root in a result.
const limit = 50

// maxQuery and maxPath bound one comparison in bytes. A longer query matches nothing, and
// nothing matches a longer path.
const (
	maxQuery = 1 << 10
	maxPath  = 4 << 10
)

// baseScore is added to each score. A client gets no negative ones.
const baseScore = 2 * maxPath

// Files returns the files below roots whose paths match query. The best match is first;
// equal ones are sorted by path. Each root is the absolute path of a folder; other roots
// have no files. The words of a query are separated by blanks, and each must match. Case does
// not matter. An empty query matches nothing, and one of blanks everything. When ctx ends, Files
// returns the matches found so far.
func Files(ctx context.Context, query string, roots []string) []protocol.FuzzyFile {
	files := []protocol.FuzzyFile{}
	if query == "" || len(query) > maxQuery {
		return files
	}
	words := strings.Fields(query)
	for _, root := range roots {
		files = append(files, best(ctx, words, root)...)
	}
	slices.SortStableFunc(files, better)
	return files
}

func better(a, b protocol.FuzzyFile) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Path, b.Path))
}

// best returns the best files of one root.
func best(ctx context.Context, words []string, root string) []protocol.FuzzyFile {
	var files []protocol.FuzzyFile
	cut := func() {
		slices.SortStableFunc(files, better)
		files = files[:min(len(files), limit)]
	}
	Walk(ctx, root, func(file string) bool {
		file = strings.ToValidUTF8(file, "\uFFFD") // it becomes JSON
		score, indices, ok := match(words, file)
		if !ok {
			return true
		}
		files = append(files, protocol.FuzzyFile{Root: root, Path: file, FileName: path.Base(file), Score: score,
			Indices: indices})
		if len(files) == 100*limit {
			cut()
		}
		return true
	})
	cut()
	return files
}

// match scores a path and returns the positions of the matched characters, ascending.
func match(words []string, file string) (uint32, []uint32, bool) {
	if len(file) > maxPath {
		return 0, nil, false
	}
	score, indices := baseScore, []uint32{}
	for _, word := range words {
		found := fuzzy.FindNoSort(word, []string{file})
		if len(found) == 0 {
			return 0, nil, false
		}
		score += found[0].Score
		for _, at := range found[0].MatchedIndexes {
			indices = append(indices, uint32(utf8.RuneCountInString(file[:at])))
		}
	}
	slices.Sort(indices)
	return uint32(max(score, 0)), slices.Compact(indices), true
}
