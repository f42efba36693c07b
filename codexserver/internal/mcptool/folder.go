package mcptool

import (
	"os"
	"path/filepath"
)

// ProjectFolder returns the project folder of Claude Code, from CLAUDE_PROJECT_DIR, or "".
func ProjectFolder() string {
	path := os.Getenv("CLAUDE_PROJECT_DIR")
	if info, err := os.Stat(path); err != nil || !info.IsDir() || !filepath.IsAbs(path) {
		return ""
	}
	return path
}
