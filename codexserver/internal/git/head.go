package git

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

const (
	timeout       = 5 * time.Second // of [Head]
	maxPackedRefs = 256 << 20       // bytes of the largest packed-refs
)

// Head returns the state of the repository that contains dir, an absolute path. It returns
// nil outside a repository. Fields that git cannot determine are empty.
//
// It reads git's files as data, since each conversation begins with it, and a start of git costs more than a turn does
// here. Git, in scratch, reads what is unusual. A URL that another file of the configuration gives is not seen.
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
	config, _ := safefile.Read(filepath.Join(commonDir, "config"), maxSmallFile)
	if m := originURL.Get().FindSubmatch(config); m != nil {
		info.RepositoryURL = string(m[1])
	}
	var ok bool
	if info.CommitHash, info.Branch, ok = plainHead(gitDir, commonDir); ok {
		return info
	}
	m, err := scratch.open(root)
	if err != nil {
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

// originURL is the first URL of the remote in a configuration, from which git fetches.
var originURL = lazyregexp.Regexp{Text: `(?m)^\[(?i:remote) "origin"\][ \t\r]*\n(?:[ \t]*[^\[\n]*\n)*?[ ` +
	`\t]*(?i:url)[ \t]*=[ \t]*"?([^"\n]*?)"?[ \t\r]*$`}

// plainHead reads the commit and branch of a working tree from git's files. The branch is "" if none is checked out or
// it has no commit. It returns false for anything unusual, which git must read.
func plainHead(gitDir, commonDir string) (commit, branch string, ok bool) {
	name, commit, err := readHead(gitDir)
	if isHash(commit) {
		return commit, "", err == nil
	}
	branch, isBranch := strings.CutPrefix(name, "refs/heads/")
	if err != nil || !isBranch || branch == "" || branch == ".invalid" || strings.Contains(branch, "..") ||
		!filepath.IsLocal(filepath.FromSlash(branch)) {
		return "", "", false
	}
	commit, err = readLine(filepath.Join(commonDir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		var packed []byte
		if packed, err = safefile.Read(filepath.Join(commonDir, "packed-refs"), maxPackedRefs); errors.Is(err,
			fs.ErrNotExist) {
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
