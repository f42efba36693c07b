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

// readable is not asked.
func readable(string) bool { return false }

// appendFile fails for the same reason.
func appendFile([]byte, string, int64) ([]byte, error) { return nil, box.ErrUnavailable }
