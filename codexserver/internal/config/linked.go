package config

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// Linked returns where the links in home, and in the folders in it, lead: every link on the way of each, and its
// end, by absolute paths. A program that manages configuration files makes such links.
// What they lead to counts as much as home itself, because the next server obeys it.
func Linked(home string) (found []string) {
	for _, dir := range configured {
		dir, err := filepath.EvalSymlinks(filepath.Join(home, dir))
		if err != nil {
			continue // what cannot be read is not obeyed
		}
		entries, _ := os.ReadDir(dir) // those that can be read
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink == 0 {
				continue
			}
			var links []string
			last := ""
			end, _, _ := paths.Follow(filepath.Join(dir, e.Name()), func(at string, info fs.FileInfo) error {
				if last = at; info.Mode()&fs.ModeSymlink != 0 {
					links = append(links, at)
				}
				return nil
			})
			// The first link is in home. Without an end, what is missing may be made where the way ends.
			found = append(append(found, links[min(1, len(links)):]...), cmp.Or(end, last))
		}
	}
	return found
}

// configured are the folders in home whose files the next server obeys.
var configured = []string{".", "codex-mcp", "prompts", "rules", "skills"}
