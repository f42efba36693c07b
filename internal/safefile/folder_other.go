//go:build !unix

package safefile

import "os"

// SyncFolder does nothing: folders cannot be synced on this system.
func SyncFolder(*os.Root) error { return nil }
