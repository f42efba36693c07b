package gitinfo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/regularfile"
)

// What is copied of a repository at most.
const (
	maxSmallFile = 1 << 20 // a loose ref, the configuration, a list of patterns
	maxRefsFile  = 256 << 20
	maxIndex     = 1 << 30
	maxRefs      = 100_000
)

// mirror is a repository as git is shown it.
type mirror struct {
	ctx     context.Context // of this one look at the repository
	root    string          // the working tree
	program string          // git
	env     []string

	// The git folder of the working tree and the one that it shares with others of
	// the repository, often the same; first those of the repository.
	gitDir, commonDir string
	dir, common       string
	scratch           string // holds both of the mirror
	settings          map[string]string
}

// newMirror makes a mirror of the repository at root, with the refs below the
// given prefixes, and without an index. Remove deletes it.
func newMirror(ctx context.Context, root, scratch string, refs ...string) (*mirror, error) {
	m, err := open(ctx, root, scratch)
	if err != nil {
		return nil, err
	}
	if err := m.make(scratch, refs); err != nil {
		return nil, errors.Join(err, m.remove())
	}
	return m, nil
}

// open finds the repository at root and reads its settings. It copies nothing.
func open(ctx context.Context, root, scratch string) (*mirror, error) {
	m := &mirror{ctx: ctx, root: root}
	scratch, err := filepath.Abs(scratch) // git runs elsewhere
	if err != nil {
		return nil, err
	}
	if err := m.find(); err != nil {
		return nil, err
	}
	if m.program, m.env, err = program(m.root, os.Environ()); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, err
	}
	return m, m.readSettings(scratch)
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
	if err := m.configure(); err != nil {
		return err
	}
	if err := m.copyRefs(refs); err != nil {
		return err
	}
	if m.common != m.dir {
		if err := os.WriteFile(filepath.Join(m.dir, "commondir"), []byte("../common\n"), 0o600); err != nil {
			return err
		}
	}
	alternate := quote(filepath.Join(m.commonDir, "objects")) + "\n"
	return os.WriteFile(filepath.Join(m.common, "objects", "info", "alternates"), []byte(alternate), 0o600)
}

func (m *mirror) remove() error {
	if m.scratch == "" {
		return nil
	}
	return os.RemoveAll(m.scratch)
}

// find finds the repository's git folders.
func (m *mirror) find() error {
	dot := filepath.Join(m.root, ".git")
	info, err := os.Stat(dot)
	if err != nil {
		return err
	}
	m.gitDir = dot
	if !info.IsDir() {
		if m.gitDir, err = pointer(dot, "gitdir:"); err != nil {
			return err
		}
	}
	m.commonDir, err = pointer(filepath.Join(m.gitDir, "commondir"), "")
	if errors.Is(err, fs.ErrNotExist) {
		m.commonDir, err = m.gitDir, nil
	}
	return err
}

// pointer reads a file of git's that holds a path behind a prefix.
func pointer(file, prefix string) (string, error) {
	data, err := regularfile.Read(file, maxSmallFile)
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(string(data), prefix)
	path = strings.TrimSpace(path)
	if !ok || path == "" {
		return "", fmt.Errorf("%s names no folder", file)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return path, nil
}

// copyRefs copies HEAD and the refs below the prefixes, in both of git's formats.
func (m *mirror) copyRefs(prefixes []string) error {
	if err := copyFile(m.dir, m.gitDir, "HEAD", maxSmallFile); err != nil {
		return err
	}
	for _, name := range []string{"packed-refs", "shallow"} {
		if err := copyFile(m.common, m.commonDir, name, maxRefsFile); err != nil {
			return err
		}
	}
	left := maxRefs
	for _, prefix := range prefixes {
		if err := m.copyTree(m.common, m.commonDir, filepath.FromSlash(prefix), maxSmallFile, &left); err != nil {
			return err
		}
	}
	if err := m.copyTree(m.common, m.commonDir, "reftable", maxRefsFile, &left); err != nil || m.dir == m.common {
		return err
	}
	return m.copyTree(m.dir, m.gitDir, "reftable", maxRefsFile, &left)
}

// copyIndex copies the index, in one part or in two, and the lists that lie beside
// the configuration.
func (m *mirror) copyIndex() error {
	names, err := filepath.Glob(filepath.Join(escapeGlob(m.gitDir), "sharedindex.*"))
	if err != nil {
		return err
	}
	for _, name := range append(names, "index") {
		if err := copyFile(m.dir, m.gitDir, filepath.Base(name), maxIndex); err != nil {
			return err
		}
	}
	for _, name := range []string{"exclude", "attributes"} {
		if err := copyFile(m.common, m.commonDir, filepath.Join("info", name), maxSmallFile); err != nil {
			return err
		}
	}
	return nil
}

// escapeGlob makes a path match itself in a pattern.
func escapeGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // there is no escape, and no such name in git's own folders
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// copyFile copies the regular file name from one folder to another, with its time:
// git compares the index's with those of the files. One that is not there is left
// out.
func copyFile(to, from, name string, most int64) (err error) {
	source, err := regularfile.Open(filepath.Join(from, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	copied, err := os.OpenFile(filepath.Join(to, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(copied, io.LimitReader(source, most+1))
	if err == nil && n > most {
		err = &regularfile.SizeError{Path: filepath.Join(from, name), Max: most}
	}
	if err := errors.Join(err, copied.Close()); err != nil {
		return err
	}
	return os.Chtimes(copied.Name(), time.Time{}, source.Info().ModTime())
}

// copyTree copies the folder name with all regular files below it; links and
// special files are left out. Left is how many files may be copied yet.
func (m *mirror) copyTree(to, from, name string, most int64, left *int) error {
	entries, err := os.ReadDir(filepath.Join(from, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var path *fs.PathError
	if errors.As(err, &path) && len(entries) == 0 {
		return nil // refs/heads is a file where the refs are kept in tables
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
			if *left--; *left < 0 {
				return fmt.Errorf("the repository has more than %d refs", maxRefs)
			}
			err = copyFile(to, from, inner, most)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
