// Package record keeps small records in a home, each in a file that is changed as a whole: alone among all
// processes, in the store before on the disk, and so that a change survives a crash.
package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Record is a record. All fields are required, except for Mirror.
type Record struct {
	// Path is that of the file.
	Path string
	// Lock is the name of a file in the same folder. Records may share it; then one of them changes at a time.
	Lock string
	// Limit is the most bytes that are read.
	Limit int64
	// Mirror is that of the home.
	Mirror *store.Mirror
}

// Alone calls f while no other process changes the record. The folder must exist.
func (r Record) Alone(f func() error) error {
	return claim.Alone(filepath.Join(filepath.Dir(r.Path), r.Lock), f)
}

// Read returns the content, which is nil without a file. Other users must not be able to read the file.
func (r Record) Read() ([]byte, error) {
	data, err := safefile.ReadSecret(r.Path, r.Limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Change replaces the content, which may be nil, by that which edit returns. It makes the folder of the file.
// When it returns nil, the change survives a crash. If it fails before the file is written, the record is as
// before. It excludes other processes, not other calls of this one.
func (r Record) Change(edit func(before []byte) (after []byte, err error)) error {
	dir := filepath.Dir(r.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return r.Alone(func() error {
		before, err := r.Read()
		if err != nil {
			return err
		}
		after, err := edit(before)
		if err == nil {
			err = r.Mirror.Put(r.Path, after)
		}
		if err != nil {
			return err
		}
		if err := safefile.Write(r.Path, after, 0o600); err != nil {
			_ = r.restore(before) // the next machine must not find what did not happen
			return err
		}
		return errors.Join(safefile.SyncPath(dir), safefile.SyncPath(filepath.Dir(dir)))
	})
}

// restore makes the store have the content that it had.
func (r Record) restore(before []byte) error {
	if before == nil {
		return r.Mirror.Delete(r.Path)
	}
	return r.Mirror.Put(r.Path, before)
}
