package git

import (
	"context"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// timeout is how long [Head] may take.
const timeout = 5 * time.Second

// Head returns the state of the repository that contains dir, an absolute path. It returns
// nil outside a repository. Fields that git cannot determine are empty.
//
// Scratch says where git works.
func Head(ctx context.Context, dir string, scratch Scratch) *protocol.GitInfo {
	root := Root(dir)
	if root == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	info := &protocol.GitInfo{}
	r, err := scratch.locate(root, false)
	if err != nil {
		return info
	}
	m, err := scratch.open(ctx, r)
	if err != nil {
		return info
	}
	defer m.remove()
	info.RepositoryURL = m.settings["remote.origin.url"]
	if out, err := m.git(ctx, call{}, "rev-parse", "HEAD", "--abbrev-ref", "HEAD"); err == nil {
		info.CommitHash, info.Branch, _ = strings.Cut(strings.TrimSpace(out), "\n")
		if info.Branch == "HEAD" { // detached
			info.Branch = ""
		}
	}
	return info
}
