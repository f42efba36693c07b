package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/internal/safefile"
)

// Limits of what is copied from a repository.
const (
	maxLooseRef = 8 << 10  // longer than any hash or name of a ref
	maxRefsSize = 64 << 20 // the files of all refs together
	maxRefs     = 100_000  // loose refs and folders
)

// allowance is how much more may be copied.
type allowance struct {
	entries int // loose refs and folders
	bytes   int64
}

// mirror is a copy of a repository's git folder for git to run on.
type mirror struct {
	ctx     context.Context // of the current call
	root    string          // the working tree
	program Program

	// gitDir is the git folder of the working tree, commonDir the one that it shares with
	// other working trees. They are often the same, and "" without a repository.
	gitDir, commonDir string
	// dir and common are the same folders of the mirror. Both lie in scratch.
	dir, common string
	scratch     string
	settings    map[string]string
	options     []string // of every git command
}

// newMirror makes a mirror of the repository at root, with the refs below the given
// prefixes and without an index. The caller must call remove.
func newMirror(ctx context.Context, root string, scratch Scratch, refs ...string) (*mirror, error) {
	m, err := open(ctx, root, scratch)
	if err != nil {
		return nil, err
	}
	if err := m.make(scratch.Dir, refs); err != nil {
		return nil, errors.Join(err, m.remove())
	}
	return m, nil
}

// open finds the repository at root and reads its settings. It copies nothing.
func open(ctx context.Context, root string, scratch Scratch) (*mirror, error) {
	m := &mirror{ctx: ctx, root: root}
	dir, err := filepath.Abs(scratch.Dir) // git runs in another folder
	if err != nil {
		return nil, err
	}
	if m.gitDir, m.commonDir, err = Folders(m.root); err != nil {
		return nil, err
	}
	if m.program, err = scratch.Find(os.Environ(), m.root); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	m.settings, err = m.program.ReadSettings(ctx, filepath.Join(m.commonDir, "config"), dir)
	return m, err
}

func (m *mirror) make(scratch string, refs []string) (err error) {
	if scratch, err = filepath.Abs(scratch); err != nil {
		return err
	}
	if m.scratch, err = os.MkdirTemp(scratch, "git-*"); err != nil {
		return err
	}
	m.dir = filepath.Join(m.scratch, "git")
	m.common = m.dir
	if m.gitDir != m.commonDir {
		m.common = filepath.Join(m.scratch, "common")
	}
	for _, dir := range []string{m.dir, filepath.Join(m.common, "refs"), filepath.Join(m.common, "info"), filepath.Join(m.common, "objects", "info")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(m.common, "config"), []byte(Configuration(m.settings)), 0o600); err != nil {
		return err
	}
	if m.gitDir == "" { // there is no repository to copy
		return os.WriteFile(filepath.Join(m.dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600)
	}
	if err := m.copyRefs(refs); err != nil {
		return err
	}
	if m.common != m.dir {
		if err := os.WriteFile(filepath.Join(m.dir, "commondir"), []byte("../common\n"), 0o600); err != nil {
			return err
		}
	}
	alternate := Quote(filepath.Join(m.commonDir, "objects")) + "\n"
	return os.WriteFile(filepath.Join(m.common, "objects", "info", "alternates"), []byte(alternate), 0o600)
}

// git runs git on the mirror with stdin and returns what it prints.
func (m *mirror) git(stdin string, args ...string) (string, error) {
	c := m.call()
	c.Stdin = stdin
	return m.program.Run(m.ctx, c, args...)
}

// call returns a call of git that writes only in the mirror.
func (m *mirror) call() Call {
	return Call{Dir: m.root, Writes: []string{m.scratch}, GitDir: m.dir, WorkTree: m.root, Options: m.options}
}

func (m *mirror) remove() error {
	if m.scratch == "" {
		return nil
	}
	return os.RemoveAll(m.scratch)
}

// copyRefs copies HEAD and the refs below the prefixes, from files or tables.
func (m *mirror) copyRefs(prefixes []string) error {
	left := allowance{maxRefs, maxRefsSize}
	if err := left.copyFile(m.dir, m.gitDir, "HEAD", maxLooseRef); err != nil {
		return err
	}
	for _, name := range []string{"packed-refs", "shallow"} {
		if err := left.copyFile(m.common, m.commonDir, name, maxRefsSize); err != nil {
			return err
		}
	}
	for _, prefix := range prefixes {
		if err := m.copyTree(m.common, m.commonDir, filepath.FromSlash(prefix), maxLooseRef, &left); err != nil {
			return err
		}
	}
	if err := m.copyTree(m.common, m.commonDir, "reftable", maxRefsSize, &left); err != nil || m.dir == m.common {
		return err
	}
	return m.copyTree(m.dir, m.gitDir, "reftable", maxRefsSize, &left)
}

// copyFile copies a file as [CopyFile] does, and counts its bytes.
func (a *allowance) copyFile(to, from, name string, most int64) error {
	err := CopyFile(to, from, name, min(most, a.bytes))
	var size *safefile.SizeError
	if errors.As(err, &size) && size.Max == a.bytes {
		return fmt.Errorf("the refs of the repository have more than %d bytes", maxRefsSize)
	}
	if err != nil {
		return err
	}
	info, err := os.Lstat(filepath.Join(to, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there was no such file
	}
	if err != nil {
		return err
	}
	a.bytes -= info.Size()
	return nil
}

// copyIndex copies the index and the repository's lists of ignored files and attributes.
func (m *mirror) copyIndex() error {
	if err := CopyIndex(m.dir, m.gitDir); err != nil {
		return err
	}
	for _, name := range []string{"exclude", "attributes"} {
		if err := CopyFile(m.common, m.commonDir, filepath.Join("info", name), maxSmallFile); err != nil {
			return err
		}
	}
	return nil
}

// copyTree copies the folder name with all regular files below it, without links and
// special files. A file may have at most most bytes.
func (m *mirror) copyTree(to, from, name string, most int64, left *allowance) error {
	entries, err := os.ReadDir(filepath.Join(from, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var path *fs.PathError
	if errors.As(err, &path) && len(entries) == 0 {
		return nil // a repository that keeps its refs in tables has a file refs/heads
	}
	if err := left.count(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(to, name), 0o700); err != nil {
		return err
	}
	for _, entry := range entries {
		if m.ctx.Err() != nil {
			return context.Cause(m.ctx)
		}
		inner := filepath.Join(name, entry.Name())
		switch {
		case entry.IsDir():
			err = m.copyTree(to, from, inner, most, left)
		case entry.Type().IsRegular():
			if err = left.count(); err == nil {
				err = left.copyFile(to, from, inner, most)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count counts a loose ref or a folder.
func (a *allowance) count() error {
	if a.entries--; a.entries < 0 {
		return fmt.Errorf("the repository has more than %d refs and folders of refs", maxRefs)
	}
	return nil
}
