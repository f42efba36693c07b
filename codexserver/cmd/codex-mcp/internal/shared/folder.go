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

	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Folder is the folder of the sockets of one user, which stays open: whatever takes its name
// later is another folder.
type Folder struct {
	path     string
	dir      *os.File
	patience time.Duration // how long a server may take to answer
}

// Open returns the user's folder, codex-mcp/run in home ($CODEX_HOME), and makes it if it is
// missing. It must be closed. Commands cannot write in it. It fails if other users can, or if
// the system cannot tell who connects to a socket.
func Open(home string) (*Folder, error) { return open(home, answerLimit, "codex-mcp", "run") }

// open opens the folder below home with these names, whose servers answer within patience.
func open(home string, patience time.Duration, names ...string) (*Folder, error) {
	if !supported {
		return nil, errors.New("this system is not supported")
	}
	if !filepath.IsAbs(home) {
		return nil, fmt.Errorf("%q is not an absolute path", home)
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	path, err := filepath.EvalSymlinks(home) // home may be a link of the user
	if err != nil {
		return nil, err
	}
	// A group may have rights to what is above, as umask 002 gives them: the last folder is open and
	// belongs to the user alone, and whoever listens is checked.
	if err := owned(path, os.Lstat, 0o002); err != nil {
		return nil, err
	}
	for _, name := range names {
		path = filepath.Join(path, name)
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := owned(path, os.Lstat, 0o002); err != nil {
			return nil, err
		}
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	if err := owned(path, func(string) (fs.FileInfo, error) { return dir.Stat() }, 0o077); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return &Folder{path, dir, patience}, nil
}

// Close closes the folder. Connections and listeners remain.
func (f *Folder) Close() error { return f.dir.Close() }

// owned refuses what is not a folder of this user, and one to which other users have any of
// the rights.
func owned(path string, look func(string) (fs.FileInfo, error), rights fs.FileMode) error {
	info, err := look(path)
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

// socket returns the way to the socket of a name, as [Folder.at].
func (f *Folder) socket(name string) string { return f.at(name + ".sock") }

// identity returns the way to the file that names the process of a server, as [Folder.at].
func (f *Folder) identity(name string) string { return f.at(name + ".pid") }

// Log returns the path of the file to which the server of a name logs.
func (f *Folder) Log(name string) string { return filepath.Join(f.path, name+".log") }

// Names returns the names of the sockets in the folder. Their servers may have ended.
func (f *Folder) Names() ([]string, error) {
	files, err := os.ReadDir(f.at("."))
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
	path := f.at(name + ".lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		switch err = claim.Wait(ctx, file); {
		case errors.Is(err, safefile.ErrLocked):
			return nil, errors.Join(errors.New("another process has been starting the server for too long"), file.Close())
		case err != nil:
			return nil, errors.Join(err, file.Close())
		case same(file, path):
			return func() { _ = file.Close() }, nil // which unlocks it
		}
		_ = file.Close() // it was swept
		if file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|noFollow, 0o600); err != nil {
			return nil, err
		}
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
	files, err := os.ReadDir(f.at("."))
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
	for _, path := range []string{f.socket(name), f.identity(name), f.at(name + ".log.1"), f.at(name + ".log"), f.at(name + ".lock")} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
