package repo

import (
	"context"
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
	r, err := scratch.open(ctx, root)
	if err == nil && r.settings["extensions.refstorage"] != "reftable" {
		var ok bool
		if info.CommitHash, info.Branch, ok = readHead(r.gitDir, r.commonDir); ok {
			info.RepositoryURL = r.settings["remote.origin.url"]
			return info
		}
	}
	if err != nil {
		return info
	}
	m, err := scratch.temporary(ctx, r, "refs/heads")
	if err != nil {
		return info
	}
	defer m.remove()
	info.CommitHash, _ = m.line(ctx, call{}, "rev-parse", "--verify", "HEAD")
	info.Branch, _ = m.line(ctx, call{}, "rev-parse", "--abbrev-ref", "HEAD")
	if info.Branch == "HEAD" { // detached, or no commit yet
		info.Branch = ""
	}
	info.RepositoryURL = m.settings["remote.origin.url"]
	return info
}
