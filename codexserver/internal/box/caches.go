package box

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// Layers are over folders in which tools keep what they can make again. A command with namespaces reads the real
// folders and writes into layers of its conversation. So nothing that it puts there is used outside of a sandbox.
type Layers struct {
	// Folder is where layers are made. Commands must not be able to write there. "" makes none.
	Folder string
	// Caches are the folders, by absolute names or with ~ for the home. Nil is [Caches].
	Caches []string
	// Limit is how many bytes a command and those before it may have in them. Default: 10 GiB.
	Limit int64
}

// Caches returns the folders of tools for programs with the environment env. Not all of them exist.
func Caches(env []string) (all []string) {
	for _, cache := range []struct{ variable, below, usual string }{
		{"XDG_CACHE_HOME", "", "~/.cache"},
		{"npm_config_cache", "", "~/.npm"},
		{"CARGO_HOME", "registry", "~/.cargo"},
		{"CARGO_HOME", "git", "~/.cargo"},
		{"GOCACHE", "", "~/.cache/go-build"},
		{"GOPATH", "pkg/mod", "~/go"},
		{"GOMODCACHE", "", "~/go/pkg/mod"},
		{"GRADLE_USER_HOME", "", "~/.gradle"},
		{"", "", "~/.m2"},
		{"NUGET_PACKAGES", "", "~/.nuget"},
		{"PNPM_HOME", "", "~/.local/share/pnpm"},
		{"BUN_INSTALL", "", "~/.bun"},
	} {
		folder := run.Value(env, cache.variable)
		if !filepath.IsAbs(folder) {
			folder = cache.usual
		}
		all = append(all, filepath.Join(folder, cache.below))
	}
	return all
}

// layers are those of one conversation.
type layers struct {
	mu     sync.Mutex
	folder *os.File // locked as long as the conversation is there
	free   int64    // bytes of the file system when it was made
}

// removeLayers removes a folder in which tools may have made folders read-only.
func removeLayers(folder string) error {
	if root, err := os.OpenRoot(folder); err == nil {
		_ = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, _ error) error {
			if e != nil && e.IsDir() {
				_ = root.Chmod(path, 0o700) // before it is read
			}
			return nil
		})
		root.Close()
	}
	return os.RemoveAll(folder)
}

// Close removes the layers of the conversation, whose commands have ended.
func (s *Sandbox) Close() error {
	l := &s.layers
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.folder == nil {
		return nil
	}
	err := removeLayers(l.folder.Name())
	_ = l.folder.Close()
	l.folder = nil
	return err
}
