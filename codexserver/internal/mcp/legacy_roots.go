package mcp

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/tools"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// rootsTimeout is how long the request for the client's roots may take.
const rootsTimeout = 5 * time.Second

// folder returns the folder of the options, or the client's first root, or
// [tools.ProjectFolder].
func (ss *LegacySession) folder(ctx context.Context) string {
	if f := ss.client.server.Folder; f != "" {
		return f
	}
	for _, root := range ss.roots(ctx) {
		return root
	}
	return tools.ProjectFolder(ctx)
}

// Folders returns the folders of the client: those in which the server was started, and the client's
// roots.
func (ss *LegacySession) Folders(ctx context.Context) []string {
	return append(tools.StartFolders(ctx, ss.client.server.Folder), ss.roots(ctx)...)
}

// roots returns the client's roots that are folders (MCP 2025-06-18, client/roots).
func (ss *LegacySession) roots(ctx context.Context) (folders []string) {
	if p := ss.hello.Load().params; p == nil || p.Capabilities.Roots == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rootsTimeout)
	defer cancel()
	list, err := mcptypes.RootsList.Call(ctx, ss.peer, nil)
	if err != nil {
		ss.client.Log().Warn("roots of the client", "error", err)
		return nil
	}
	for _, root := range list.Roots {
		if path, ok := filePath(root.URI); ok {
			folders = append(folders, path)
		}
	}
	return folders
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
