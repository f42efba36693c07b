package mcptool

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
)

// ProjectFolder returns the project folder of Claude Code, from CLAUDE_PROJECT_DIR in the
// environment of the client whose call ctx is. Without it, it returns the folder in which
// the client runs, or "" for that of this process.
func ProjectFolder(ctx context.Context) string {
	o := engine.OriginOf(ctx)
	if o == nil {
		return projectFolder(os.Getenv("CLAUDE_PROJECT_DIR"))
	}
	for _, entry := range slices.Backward(o.Environ) {
		if path, ok := strings.CutPrefix(entry, "CLAUDE_PROJECT_DIR="); ok {
			if path = projectFolder(path); path != "" {
				return path
			}
			break
		}
	}
	return o.Folder
}

func projectFolder(path string) string {
	if info, err := os.Stat(path); err != nil || !info.IsDir() || !filepath.IsAbs(path) {
		return ""
	}
	return path
}
