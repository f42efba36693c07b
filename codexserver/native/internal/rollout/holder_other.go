//go:build !linux

package rollout

import "io/fs"

// holder returns the process that has locked a file, which these systems do not tell.
func holder(fs.FileInfo) string { return "" }
