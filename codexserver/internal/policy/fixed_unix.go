//go:build unix

package policy

import (
	"os"
	"slices"
	"syscall"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// systemFolders are the folders at the top whose files count as fixed for root, which could
// write every file. Commands of root can write there only outside the sandbox, or if the
// configuration names such a folder.
var systemFolders = []string{"bin", "etc", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "sbin", "usr", "System", "Library"}

// unwritable reports whether no command of this user can ever write the file or folder at an
// absolute path, or put another one in its place: the user can write neither it nor a folder
// on the way, links resolved. What lies in a root is never fixed.
func unwritable(path string, roots []os.FileInfo) bool {
	user := os.Geteuid()
	return walk(path, func(at string, info os.FileInfo) bool {
		if slices.ContainsFunc(roots, func(root os.FileInfo) bool { return os.SameFile(root, info) }) {
			return false
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return false
		}
		if user == 0 {
			names := split(at)
			ok = len(names) == 0 || slices.Contains(systemFolders, names[0]) && !paths.Below(at, "/usr/src")
		} else {
			ok = int(stat.Uid) != user
		}
		// The mode of a link means nothing: the folder that it lies in counts.
		return ok && (info.Mode()&os.ModeSymlink != 0 || info.Mode()&0o022 == 0)
	})
}
