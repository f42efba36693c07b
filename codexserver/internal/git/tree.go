package git

import (
	"compress/zlib"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file in an index.
type entry struct{ mode, id string }

// writeTree writes a tree of files into the mirror, and returns its name. Git would need an index and two starts for that.
func (m *mirror) writeTree(files map[string]entry) (string, error) {
	folders, in := map[string]map[string]entry{}, map[string]entry{}
	for name, e := range files {
		dir, rest, ok := strings.Cut(name, "/")
		switch {
		case !ok:
			in[name] = e
		case folders[dir] == nil:
			folders[dir] = map[string]entry{rest: e}
		default:
			folders[dir][rest] = e
		}
	}
	for dir, files := range folders {
		id, err := m.writeTree(files)
		if err != nil {
			return "", err
		}
		in[dir+"/"] = entry{"40000", id} // git sorts folders as if their names ended so
	}
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(in)) {
		id, err := hex.DecodeString(in[name].id)
		if err != nil {
			return "", fmt.Errorf("the object of %s: %w", name, err)
		}
		text = fmt.Appendf(text, "%s %s\x00%s", in[name].mode, strings.TrimSuffix(name, "/"), id)
	}
	return m.writeObject(append(fmt.Appendf(nil, "tree %d\x00", len(text)), text...))
}

// writeObject writes an object, which begins with its kind and its size, into the mirror, and returns its name.
func (m *mirror) writeObject(text []byte) (id string, err error) {
	if m.settings["extensions.objectformat"] == "sha256" {
		id = fmt.Sprintf("%x", sha256.Sum256(text))
	} else {
		id = fmt.Sprintf("%x", sha1.Sum(text))
	}
	dir := filepath.Join(m.folder(), "objects", id[:2])
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.Create(filepath.Join(dir, id[2:]))
	if err != nil {
		return "", err
	}
	defer f.Close()
	w := zlib.NewWriter(f)
	if _, err = w.Write(text); err == nil {
		err = w.Close()
	}
	return id, err
}
