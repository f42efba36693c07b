// Package gitinfo asks git about a folder, without running anything that the repository
// configures.
//
// Git never sees the repository's own git folder. It runs on a mirror: copies of the refs
// and the index, the objects by reference, and a configuration of this package. So the
// repository cannot name a program for git to run, in its configuration, a hook, an
// include, or the settings of a worktree or submodule. Without these the names in
// .gitattributes have no meaning.
package gitinfo

import (
	"context"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// timeout is how long [Read] may take.
const timeout = 5 * time.Second

// Root returns the top of the repository that contains dir, an absolute path. That is the
// nearest folder whose .git is a repository for git. Root returns "" outside a repository.
func Root(dir string) string { return git.Root(dir) }

// Read returns the state of the repository that contains dir, an absolute path. It returns
// nil outside a repository. Fields that git cannot determine are empty.
//
// Scratch says where git works.
func Read(ctx context.Context, dir string, scratch git.Scratch) *protocol.GitInfo {
	root := Root(dir)
	if root == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	info := &protocol.GitInfo{}
	if m, err := open(ctx, root, scratch); err == nil && m.settings["extensions.refstorage"] != "reftable" {
		var ok bool
		if info.CommitHash, info.Branch, ok = git.Head(m.gitDir, m.commonDir); ok {
			info.RepositoryURL = m.settings["remote.origin.url"]
			return info
		}
	}
	m, err := newMirror(ctx, root, scratch, "refs/heads")
	if err != nil {
		return info
	}
	defer m.remove()
	info.CommitHash = m.line("rev-parse", "--verify", "HEAD")
	info.Branch = m.line("rev-parse", "--abbrev-ref", "HEAD")
	if info.Branch == "HEAD" { // detached, or no commit yet
		info.Branch = ""
	}
	info.RepositoryURL = m.settings["remote.origin.url"]
	return info
}

// line returns the first line that git prints, or "" if git fails.
func (m *mirror) line(args ...string) string {
	out, err := m.git("", args...)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(out, "\n")
	return first
}
