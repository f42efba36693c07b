package run

import (
	"io/fs"
	"os"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// Folders are folders that a person is asked about, as they were before the question. They stay open, so that no other
// one gets the identity of one of them.
type Folders struct {
	names []string
	files []*os.File // by name; nil for one that could not be opened, such as one that is missing
}

// HoldFolders opens folders by absolute paths. [Folders.Close] must be called.
func HoldFolders(names ...string) *Folders {
	h := &Folders{names: names}
	for _, name := range names {
		file, _ := OpenFolder(name) // Replaced looks at what cannot be opened
		h.files = append(h.files, file)
	}
	return h
}

// Replaced returns the first path that leads to another folder now, or through a symbolic link, and "" if none does.
func (h *Folders) Replaced() string {
	for i, name := range h.names {
		if linked(name) || h.files[i] != nil && !isAt(h.files[i], name) {
			return name
		}
	}
	return ""
}

// Close closes the folders.
func (h *Folders) Close() {
	for _, file := range h.files {
		if file != nil {
			_ = file.Close() // nothing was written
		}
	}
}

// linked reports whether an absolute path leads through a symbolic link, also to what is missing, or cannot be followed.
func linked(path string) bool {
	real, _, err := paths.Follow(path, func(string, fs.FileInfo) error { return nil })
	return real != path || err != nil && !os.IsNotExist(err)
}

// isAt reports whether an open folder is at a path without links.
func isAt(folder *os.File, path string) bool {
	held, err := folder.Stat()
	now, failed := os.Lstat(path)
	return err == nil && failed == nil && os.SameFile(held, now)
}
