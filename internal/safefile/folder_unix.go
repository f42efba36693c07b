//go:build unix

package safefile

import (
	"errors"
	"os"
)

// SyncFolder writes the names in a folder to disk: what was written there, renamed or removed survives a crash of the
// system. Where folders cannot be synced it does nothing.
func SyncFolder(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
