package repo

import (
	"context"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// timeout is how long [Read] may take.
const timeout = 5 * time.Second

// Read returns the state of the repository that contains dir, an absolute path. It returns
// nil outside a repository. Fields that git cannot determine are empty.
//
// Scratch says where git works.
func Read(ctx context.Context, dir string, scratch Scratch) *protocol.GitInfo {
	root := Root(dir)
	if root == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	info := &protocol.GitInfo{}
	if m, err := open(ctx, root, scratch); err == nil && m.settings["extensions.refstorage"] != "reftable" {
		var ok bool
		if info.CommitHash, info.Branch, ok = Head(m.gitDir, m.commonDir); ok {
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
