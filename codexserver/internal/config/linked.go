package config

import (
	"io/fs"
	"os"
	"path/filepath"
)

// maxHops is how many links one name may lead through, as in the kernel.
const maxHops = 40

// Linked returns where the links in home, and in the folders in it, lead: every step of each,
// and its end, by absolute paths. A program that manages configuration files makes such links.
// What they lead to counts as much as home itself, because the next server obeys it.
func Linked(home string) []string {
	var found []string
	for _, dir := range configured {
		entries, err := os.ReadDir(filepath.Join(home, dir))
		if err != nil {
			continue // what cannot be read is not obeyed
		}
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 {
				found = append(found, hops(filepath.Join(home, dir, e.Name()))...)
			}
		}
	}
	return found
}

// configured are the folders in home whose files the next server obeys.
var configured = []string{".", "codex-mcp", "prompts", "rules", "skills"}

// hops returns the steps of a link.
func hops(link string) (steps []string) {
	for range maxHops {
		to, err := os.Readlink(link)
		if err == nil && !filepath.IsAbs(to) {
			link, err = filepath.EvalSymlinks(filepath.Dir(link))
			to = filepath.Join(link, to)
		}
		if err != nil {
			break
		}
		link = filepath.Clean(to)
		steps = append(steps, link)
	}
	return steps
}
