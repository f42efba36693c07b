package taskfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

const (
	// taskPrefix and taskSuffix enclose a task's id in the name of its file.
	taskPrefix, taskSuffix = "task-", ".json"
	// lockPrefix begins the name of a server's lock.
	lockPrefix = "server-"
	// tempPrefix begins the name of a file that will replace another.
	tempPrefix = ".tmp-"
	// guardFile is locked while a server takes over tasks.
	guardFile = "guard"
	// maxTries is how often to open a file that is replaced each time.
	maxTries = 100
)

func fileName(id string) string { return taskPrefix + id + taskSuffix }

// fileID returns the id in the name of a task's file.
func fileID(name string) (id string, ok bool) {
	name, prefix := strings.CutPrefix(name, taskPrefix)
	id, suffix := strings.CutSuffix(name, taskSuffix)
	return id, prefix && suffix && checkID(id) == nil
}

// foreign returns the error for a file or folder that another user owns or can write to.
func foreign(path string) error {
	return fmt.Errorf("%s belongs to another user, or other users can write to it", path)
}

// open opens the folder. It is opened for each call, because it may be removed at any time.
func (s *Store) open() (*os.Root, error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil && !isOwn(info) {
		err = foreign(s.dir)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// makeFolder makes the folder and those above it, durably.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeFolder(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return err
	}
	return errors.Join(safefile.SyncFolder(root), root.Close())
}

// open opens the file of a task. It fails if the store cannot have written it.
func open(root *os.Root, id string) (f *safefile.File, err error) {
	for range maxTries {
		if f, err = safefile.OpenIn(root, fileName(id), os.O_RDONLY); !errors.Is(err, safefile.ErrReplaced) {
			break
		}
	}
	if err == nil && !isOwn(f.Info()) {
		err = errors.Join(foreign(filepath.Join(root.Name(), fileName(id))), f.Close())
	}
	return f, err
}
