package safefile

import (
	"errors"
	"math/rand/v2"
	"os"
)

// Room checks that a folder, which it makes if missing, has room for size bytes more. It
// writes a file and removes it, because only that meets every limit: of the disk, of a quota
// and of the size of files. Size is at most 1 MiB.
func Room(dir string, size int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".tmp-*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = f.Write(noise(min(size, 1<<20)))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// noise returns bytes that no file system stores in less space.
func noise(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // it does not fail
	return b
}
