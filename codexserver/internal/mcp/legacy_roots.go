package mcp

import (
	"cmp"
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// rootsTimeout is how long the request for the client's roots may take.
const rootsTimeout = 5 * time.Second

// folder returns the folder of the options, or the client's first root, or
// [mcptool.ProjectFolder].
func (ss *LegacySession) folder(ctx context.Context) string {
	if f := ss.client.server.Folder; f != "" {
		return f
	}
	return cmp.Or(ss.root(ctx), mcptool.ProjectFolder(ctx))
}

// root returns the client's first root that is a folder, or "" (MCP 2025-06-18,
// client/roots).
func (ss *LegacySession) root(ctx context.Context) string {
	ss.mu.Lock()
	has := ss.hello != nil && ss.hello.Capabilities.Roots != nil
	ss.mu.Unlock()
	if !has {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, rootsTimeout)
	defer cancel()
	list, err := mcptypes.RootsList.Call(ctx, ss.peer, nil)
	if err != nil {
		ss.client.Log().Warn("roots of the client", "error", err)
		return ""
	}
	for _, root := range list.Roots {
		if path, ok := filePath(root.URI); ok {
			return path
		}
	}
	return ""
}

// filePath returns the path of a file URI on this machine.
func filePath(uri string) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", false
	}
	path := filepath.FromSlash(u.Path)
	if filepath.Separator != '/' { // file:///C:/x
		path = strings.TrimPrefix(path, string(filepath.Separator))
	}
	return path, filepath.IsAbs(path)
}
