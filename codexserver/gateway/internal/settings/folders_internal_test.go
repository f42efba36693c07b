package settings

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// checkEachPair does what [httpTable.checkFolders] does, by comparing each folder with all others. The
// folders must be absolute. It returns the errors that are right for the first wrong folder.
func checkEachPair(t *httpTable, names []string) (right []string) {
	for _, name := range names {
		for _, folder := range t.Principals[name].Folders {
			for _, other := range names {
				for _, theirs := range t.Principals[other].Folders {
					if other != name && strings.HasPrefix(folder, theirs+string(filepath.Separator)) {
						right = append(right, fmt.Sprintf("http.principals.%s.folders: %s lies in %s of %s", name, folder, theirs, other))
					}
				}
			}
			if right != nil {
				return right
			}
		}
	}
	return nil
}

// TestFoldersOfRandomUsers compares the check of folders with one that compares each pair.
func TestFoldersOfRandomUsers(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	parts := []string{"a", "a-b", "a.b", "a b", "b", "ä"} // some sort before the separator
	wrong := 0
	const rounds = 20000
	for range rounds {
		table := &httpTable{Principals: map[string]Principal{}}
		for u := range 1 + random.IntN(5) {
			var p Principal
			for range 1 + random.IntN(3) {
				folder := string(filepath.Separator)
				for range 1 + random.IntN(4) {
					folder = filepath.Join(folder, parts[random.IntN(len(parts))])
				}
				p.Folders = append(p.Folders, folder)
			}
			table.Principals[fmt.Sprint("u", u)] = p
		}
		names := slices.Sorted(maps.Keys(table.Principals))
		err, right := table.checkFolders(names), checkEachPair(table, names)
		if right != nil {
			wrong++
		}
		if (err != nil) != (right != nil) || err != nil && !slices.Contains(right, err.Error()) {
			t.Fatalf("seed %d: %v\nerror %v, want one of %q", seed, table.Principals, err, right)
		}
	}
	if wrong < rounds/10 || wrong > rounds*9/10 {
		t.Errorf("%d of %d tables were wrong", wrong, rounds)
	}
}
