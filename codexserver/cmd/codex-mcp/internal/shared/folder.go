package shared

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Folder is the folder of the sockets of one user.
type Folder struct {
	path     string
	patience time.Duration // how long a server may take to answer
}

// Open returns the user's folder, and makes it if it is missing: codex-mcp in the folder
// runtime ($XDG_RUNTIME_DIR), or without that, codex-mcp/run in home ($CODEX_HOME). It
// fails if other users could change the folder, or if the system cannot tell who connects
// to a socket.
func Open(runtime, home string) (*Folder, error) {
	if !supported {
		return nil, errors.New("this system is not supported")
	}
	base, names := runtime, []string{"codex-mcp"}
	if runtime == "" {
		base, names = home, []string{"codex-mcp", "run"}
		if err := os.MkdirAll(home, 0o700); err != nil {
			return nil, err
		}
	}
	if !filepath.IsAbs(base) {
		return nil, fmt.Errorf("%q is not an absolute path", base)
	}
	path, err := filepath.EvalSymlinks(base) // home may be a link of the user
	if err != nil {
		return nil, err
	}
	if err := owned(path, 0o022); err != nil {
		return nil, err
	}
	for i, name := range names {
		path = filepath.Join(path, name)
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		others := fs.FileMode(0o022)
		if i == len(names)-1 {
			others = 0o077
		}
		if err := owned(path, others); err != nil {
			return nil, err
		}
	}
	return &Folder{path, answerLimit}, nil
}

// owned refuses what is not a folder of this user, and one to which other users have any of
// the rights.
func owned(path string, rights fs.FileMode) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", path)
	case !mine(info):
		return fmt.Errorf("%s belongs to another user", path)
	case info.Mode().Perm()&rights != 0:
		return fmt.Errorf("other users have access to %s: its mode is %v", path, info.Mode().Perm())
	}
	return nil
}

// maxSocket is the length of the longest path of a socket on all systems.
const maxSocket = 103

func (f *Folder) socket(name string) string { return filepath.Join(f.path, name+".sock") }

// Log returns the path of the file to which the server of a name logs.
func (f *Folder) Log(name string) string { return filepath.Join(f.path, name+".log") }

// Names returns the names of the sockets in the folder. Their servers may have ended.
func (f *Folder) Names() ([]string, error) {
	files, err := os.ReadDir(f.path)
	var names []string
	for _, file := range files {
		if name, ok := strings.CutSuffix(file.Name(), ".sock"); ok {
			names = append(names, name)
		}
	}
	return names, err
}

// lock waits until no other process starts or ends the server of a name.
func (f *Folder) lock(ctx context.Context, name string) (unlock func(), err error) {
	path := filepath.Join(f.path, name+".lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = safefile.Lock(file); err == nil {
			if same(file, path) {
				return func() { _ = file.Close() }, nil // which unlocks it
			}
			_ = file.Close() // it was swept
			if file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|noFollow, 0o600); err != nil {
				return nil, err
			}
			continue
		}
		if errors.Is(err, safefile.ErrLocked) {
			select {
			case <-time.After(lockTick):
				continue
			case <-ctx.Done():
				err = errors.New("another process has been starting the server for too long")
			}
		}
		return nil, errors.Join(err, file.Close())
	}
}

// same reports whether the file at a path is still the open one.
func same(file *os.File, path string) bool {
	mine, err := file.Stat()
	found, failed := os.Lstat(path)
	return err == nil && failed == nil && os.SameFile(mine, found)
}

// keepFiles is how long the files of a server are kept that has ended: its log may say why.
const keepFiles = 7 * 24 * time.Hour

// Sweep removes the files of servers that have ended and were not used for [keepFiles].
// Other flags and variables make another name, so the files would become more and more.
func (f *Folder) Sweep(ctx context.Context) error {
	files, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	used := map[string]time.Time{}
	for _, file := range files {
		info, err := file.Info()
		if err != nil {
			continue // it has just been removed
		}
		name, _, _ := strings.Cut(file.Name(), ".")
		if at := info.ModTime(); at.After(used[name]) {
			used[name] = at
		}
	}
	var failed []error
	for name, at := range used {
		if time.Since(at) > keepFiles {
			failed = append(failed, f.remove(ctx, name))
		}
	}
	return errors.Join(failed...)
}

// remove removes the files of a name unless its server runs.
func (f *Folder) remove(ctx context.Context, name string) error {
	unlock, err := f.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	if c, err := f.dial(ctx, name, f.patience); !errors.Is(err, ErrAbsent) {
		if err == nil {
			_ = c.Close()
		}
		return nil // it runs, or its socket is not ours
	}
	var failed []error
	for _, path := range []string{f.socket(name), f.Log(name) + ".1", f.Log(name), filepath.Join(f.path, name+".lock")} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// lockTick is how often a locked file is tried again.
const lockTick = 10 * time.Millisecond
