package safefile

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
)

// Reserve keeps room on a disk, so that what must be recorded still can be when the disk is full: one
// file without a name, which is written at most once. It is safe for concurrent use. Nil keeps no
// room, and finds that there is enough.
type Reserve struct {
	dir  string
	size int
	turn chan struct{} // has an element while one looks at file
	file *os.File      // nil without the reserve
}

// NewReserve returns a reserve of size bytes, at most 1 MiB, on the disk of a folder. The first
// Check takes the room.
func NewReserve(dir string, size int) *Reserve {
	return &Reserve{dir: dir, size: min(size, 1<<20), turn: make(chan struct{}, 1)}
}

// Check takes the reserve, unless it is taken, and fails if its folder, which it makes if missing, has
// no room for as many bytes more. It asks the system and writes nothing. A quota of which the system
// does not tell is noticed when the reserve is taken, again after each Release. On systems that do
// not tell about room Check writes a file and removes it.
func (r *Reserve) Check() error {
	if r == nil {
		return nil
	}
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	free, err := roomIn(r.dir)
	if r.file == nil || err != nil {
		if err := os.MkdirAll(r.dir, 0o700); err != nil {
			return err
		}
		if err := r.take(); err != nil {
			return err
		}
		free, err = roomIn(r.dir)
	}
	if err == nil && free < int64(r.size) {
		err = &fs.PathError{Op: "write", Path: r.dir, Err: errNoRoom}
	}
	return err
}

// take takes the reserve on the disk that the folder has now.
func (r *Reserve) take() error {
	if err := r.free(); err != nil {
		return err
	}
	f, err := os.CreateTemp(r.dir, ".tmp-*") // its mode is 0600
	if err != nil {
		return err
	}
	kept := tellsRoom && os.Remove(f.Name()) == nil                  // without a name nothing is left behind
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), int64(r.size)) // which no file system stores in less space
	if err == nil && kept {
		r.file = f
		return nil
	}
	if err = errors.Join(err, f.Close()); !kept {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// Release gives up the room for those who need it now, until the next Check.
func (r *Reserve) Release() error {
	if r == nil {
		return nil
	}
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	return r.free()
}

func (r *Reserve) free() error {
	f := r.file
	if r.file = nil; f == nil {
		return nil
	}
	return f.Close() // nobody else has the file
}

// allRoom stands for room of which the system does not tell.
const allRoom = math.MaxInt64
