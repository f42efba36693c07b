package tools

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// ProjectFolder returns the project folder of Claude Code, from CLAUDE_PROJECT_DIR in the
// environment of the client whose call ctx is. Without it, it returns the folder in which
// the client runs, or "" for that of this process.
func ProjectFolder(ctx context.Context) string {
	environ, folder := os.Environ(), ""
	if o := engine.OriginOf(ctx); o != nil {
		environ, folder = o.Environ, o.Folder
	}
	path := run.Value(environ, "CLAUDE_PROJECT_DIR")
	if info, err := os.Stat(path); err == nil && info.IsDir() && filepath.IsAbs(path) {
		return path
	}
	return folder
}

// StartFolders returns the folders in which a server was started for the client whose call ctx is:
// folder, unless it is "", the client's project, and the process's own working folder.
func StartFolders(ctx context.Context, folder string) []string {
	all := []string{folder, ProjectFolder(ctx)}
	if engine.OriginOf(ctx) == nil {
		wd, _ := os.Getwd()
		all = append(all, wd)
	}
	return slices.DeleteFunc(all, func(path string) bool { return path == "" })
}
