package git

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

const (
	timeout       = 5 * time.Second // of [Head]
	maxPackedRefs = 256 << 20       // bytes of the largest packed-refs
)

// Head returns the state of the repository that contains dir, an absolute path. It returns
// nil outside a repository. Fields that git cannot determine are empty.
//
// It reads the commit and the branch from git's files as data, since each conversation begins with it. Git reads the
// configuration, and, in scratch, what is unusual.
func Head(ctx context.Context, dir string, scratch Scratch) *protocol.GitInfo {
	root := Root(dir)
	if root == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	info := &protocol.GitInfo{}
	gitDir, commonDir, err := folders(root)
	if err != nil {
		return info
	}
	m, err := scratch.open(root)
	if err == nil {
		_ = m.ownSettings(ctx)
		info.RepositoryURL = m.settings[originURL]
	}
	var ok bool
	if info.CommitHash, info.Branch, ok = plainHead(gitDir, commonDir); ok || err != nil {
		return info
	}
	defer m.remove()
	if out, err := m.git(ctx, call{}, "rev-parse", "HEAD", "--abbrev-ref", "HEAD"); err == nil {
		info.CommitHash, info.Branch, _ = strings.Cut(strings.TrimSpace(out), "\n")
		if info.Branch == "HEAD" { // detached
			info.Branch = ""
		}
	}
	return info
}

// plainHead reads the commit and branch of a working tree from git's files. The branch is "" if none is checked out or
// it has no commit. It returns false for anything unusual, which git must read.
func plainHead(gitDir, commonDir string) (commit, branch string, ok bool) {
	name, commit, err := readHead(gitDir)
	if isHash(commit) {
		return commit, "", err == nil
	}
	branch, isBranch := strings.CutPrefix(name, "refs/heads/")
	if err != nil || !isBranch || branch == "" || branch == ".invalid" || strings.Contains(branch, "..") || !filepath.IsLocal(filepath.FromSlash(branch)) {
		return "", "", false
	}
	commit, err = readLine(filepath.Join(commonDir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		var packed []byte
		if packed, err = safefile.Read(filepath.Join(commonDir, "packed-refs"), maxPackedRefs); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		before, _, found := strings.Cut(string(packed), " "+name+"\n")
		if !found && err == nil { // the branch has no commit yet
			return "", "", true
		}
		commit = before[strings.LastIndexByte(before, '\n')+1:]
	}
	if err != nil || !isHash(commit) {
		return "", "", false
	}
	return commit, branch, true
}
