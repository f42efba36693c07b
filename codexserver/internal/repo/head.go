package repo

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// readHead reads the commit and branch of a working tree from git's files: HEAD, the file of
// the branch, and packed-refs. The branch is "" if none is checked out or it has no commit.
// readHead returns false for anything unusual, which git must read.
func readHead(gitDir, commonDir string) (commit, branch string, ok bool) {
	text, err := readLine(filepath.Join(gitDir, "HEAD"))
	if err != nil {
		return "", "", false
	}
	if isHash(text) {
		return text, "", true
	}
	name, symbolic := strings.CutPrefix(text, "ref: ")
	branch, isBranch := strings.CutPrefix(name, "refs/heads/")
	if !symbolic || !isBranch || branch == "" || strings.Contains(branch, "..") || !filepath.IsLocal(filepath.FromSlash(branch)) {
		return "", "", false
	}
	commit, err = readLine(filepath.Join(commonDir, filepath.FromSlash(name)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if commit, err = packed(commonDir, name); err != nil {
			return "", "", false
		}
	case err != nil || !isHash(commit):
		return "", "", false
	}
	if commit == "" { // the branch has no commit yet
		branch = ""
	}
	return commit, branch, true
}

// maxPackedRefs is the size of the largest packed-refs in bytes.
const maxPackedRefs = 256 << 20

// packed looks up a ref in packed-refs. It returns "" if the ref is missing.
func packed(commonDir, name string) (string, error) {
	data, err := safefile.Read(filepath.Join(commonDir, "packed-refs"), maxPackedRefs)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(data)) {
		hash, ref, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		if ref == name && isHash(hash) {
			return hash, nil
		}
	}
	return "", nil
}

// readLine reads a file of one line.
func readLine(path string) (string, error) {
	data, err := safefile.Read(path, maxSmallFile)
	return strings.TrimSpace(string(data)), err
}

// isHash reports whether s is the name of an object in SHA-1 or SHA-256.
func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}
