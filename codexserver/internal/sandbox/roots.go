package sandbox

import (
	"path/filepath"
	"runtime"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// WritableRoots are the folders that a policy leaves writable for what runs in
// cwd with the environment env, whether or not this system can enforce it. None
// is given for full access, which has no bounds.
func WritableRoots(policy protocol.SandboxPolicy, cwd string, env []string) []string {
	if policy.Mode != protocol.SandboxWorkspaceWrite {
		return nil
	}
	roots := []string{cwd}
	add := func(dir string) {
		if filepath.IsAbs(dir) {
			roots = append(roots, filepath.Clean(dir))
		}
	}
	for _, dir := range policy.WritableRoots {
		add(dir)
	}
	if !policy.ExcludeSlashTmp && runtime.GOOS != "windows" {
		add("/tmp")
	}
	if !policy.ExcludeTmpdirEnvVar {
		for _, entry := range env {
			if dir, ok := strings.CutPrefix(entry, "TMPDIR="); ok {
				add(dir)
			}
		}
	}
	return roots
}
