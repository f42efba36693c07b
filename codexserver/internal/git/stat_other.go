//go:build !unix

package git

import (
	"io/fs"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
)

// readFolder fails: without a sandbox there is no look.
func readFolder(string) ([]fs.DirEntry, error) { return nil, box.ErrUnavailable }

// lstat fails for the same reason.
func lstat(string) (stat, error) { return stat{}, box.ErrUnavailable }
