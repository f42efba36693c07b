package safefile

import (
	"errors"
	"os"
)

// SyncPath is [SyncFolder] for the folder at a path.
func SyncPath(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	return errors.Join(SyncFolder(root), root.Close())
}
