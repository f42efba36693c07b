package sandbox

import (
	"context"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Marks keep what writes apart from what nobody is asked about: a command outside the sandbox
// under an earlier approval runs only while no command in the sandbox, of any server with the
// same File, may write what it reads. The zero value keeps nothing apart.
//
// A mark is a lock of a byte of File. The byte stands for a folder, whatever its names are. A
// command in the sandbox can read File, and so it can share a lock, which only leads to a
// question. The lock that others wait for needs the right to write.
type Marks struct {
	// File is a path that no command in the sandbox can write.
	File string
}

// ErrMarked reports that a command which nobody was asked about still reads what another one
// would write.
var ErrMarked = errors.New("a command that an earlier approval lets run outside the sandbox reads these folders, so nothing else may write them now; try again later")

// markWait is the time between two attempts.
const markWait = 20 * time.Millisecond

// Write marks folders as writable until end is called. It waits until no command runs that
// reads there and must not see them change, for at most the time; the error is then
// [ErrMarked], or that of ctx. It calls waits, unless nil, before it waits.
func (m *Marks) Write(ctx context.Context, most time.Duration, waits func(), folders ...string) (end func(), err error) {
	if m == nil || m.File == "" || len(folders) == 0 {
		return func() {}, nil
	}
	var infos []fs.FileInfo
	for _, folder := range folders {
		if info, err := os.Stat(folder); err == nil {
			infos = append(infos, info)
		}
	}
	var tick *time.Ticker
	over := time.After(most)
	for {
		end, err := m.lock(infos, func(f *os.File, at int64) error { return safefile.ShareAt(f, at) })
		if !errors.Is(err, safefile.ErrLocked) {
			if err != nil {
				// Without the file no server with it can lock it for itself either.
				return func() {}, nil
			}
			return end, nil
		}
		if tick == nil {
			tick = time.NewTicker(markWait)
			defer tick.Stop()
			if waits != nil {
				waits()
			}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-over:
			return nil, ErrMarked
		case <-tick.C:
		}
	}
}

// Alone reports whether no running command may write in one of the folders, and sees to it
// until end is called. It does not wait.
func (m *Marks) Alone(folders []fs.FileInfo) (end func(), ok bool) {
	if m == nil || m.File == "" {
		return func() {}, true
	}
	end, err := m.lock(folders, func(f *os.File, at int64) error { return safefile.LockAt(f, at) })
	return end, err == nil
}

func (m *Marks) lock(folders []fs.FileInfo, lock func(f *os.File, at int64) error) (end func(), err error) {
	if err := os.MkdirAll(filepath.Dir(m.File), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(m.File, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	end = func() { _ = errors.Join(safefile.UnlockRange(f), f.Close()) }
	for _, folder := range folders {
		at, ok := byteOf(folder)
		if !ok {
			err = errors.ErrUnsupported
		} else {
			err = lock(f, at)
		}
		if err != nil {
			end()
			return nil, err
		}
	}
	return end, nil
}

// placeOf returns the byte that stands for a folder.
func placeOf(device, inode uint64) int64 {
	h := fnv.New64a()
	for _, n := range []uint64{device, inode} {
		for i := range 8 {
			_, _ = h.Write([]byte{byte(n >> (8 * i))})
		}
	}
	return int64(h.Sum64() >> 2)
}
