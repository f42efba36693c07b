package tools

import (
	"os"
	"path/filepath"
)

// ProjectFolder returns the folder that Claude Code names as its project in
// CLAUDE_PROJECT_DIR, "" when it names none.
func ProjectFolder() string {
	path := os.Getenv("CLAUDE_PROJECT_DIR")
	if info, err := os.Stat(path); err != nil || !info.IsDir() || !filepath.IsAbs(path) {
		return ""
	}
	return path
}
