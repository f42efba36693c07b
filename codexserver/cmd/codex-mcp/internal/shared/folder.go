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
)

// Folder is the folder of the sockets of one user, which stays open: whatever takes its name
// later is another folder.
type Folder struct {
	// Patience is how long a process may take to answer: ten seconds.
	Patience time.Duration

	path string
	dir  *os.File
}

// Open returns the user's folder, codex-mcp/run in home ($CODEX_HOME), and makes it if it is
// missing. It must be closed. Commands cannot write in it. It fails if other users can, or if
// the system cannot tell who connects to a socket.
func Open(home string) (*Folder, error) {
	if !supported {
		return nil, errUnsupported
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
	for _, name := range []string{"", "codex-mcp", "run"} {
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
	return &Folder{10 * time.Second, path, dir}, nil
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

// alone calls do while no other process starts or ends a server.
func (f *Folder) alone(ctx context.Context, do func() error) error {
	file, err := os.OpenFile(f.at("lock"), os.O_CREATE|os.O_RDWR|noFollow, 0o600)
	if err != nil {
		return err
	}
	defer file.Close() // which unlocks it
	if err := claim.Wait(ctx, file); err != nil {
		return fmt.Errorf("another process starts or ends a shared server: %w", err)
	}
	return do()
}

// keepFiles is how long the files of a server remain after its end: its log may be wanted.
const keepFiles = 7 * 24 * time.Hour

// sweep removes old files of servers that do not run.
func (f *Folder) sweep(ctx context.Context) error {
	files, err := os.ReadDir(f.at("."))
	failed := []error{err}
	for _, file := range files {
		name, _, ok := strings.Cut(file.Name(), ".")
		info, err := file.Info() // fails if it has just been removed
		if !ok || err != nil || time.Since(info.ModTime()) < keepFiles {
			continue
		}
		failed = append(failed, f.alone(ctx, func() error {
			c, err := f.dial(ctx, name)
			switch {
			case errors.Is(err, ErrAbsent):
				return remove(f.at(file.Name()))
			case err == nil:
				return c.Close()
			}
			return nil // the socket is not ours
		}))
	}
	return errors.Join(failed...)
}

// remove removes files that may be missing.
func remove(paths ...string) error {
	var failed []error
	for _, path := range paths {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
