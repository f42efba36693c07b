package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// source is a repository, or a folder without one.
type source struct {
	root string // the working tree
	// gitDir is the git folder of the working tree, commonDir the one that it shares with
	// other working trees. They are often the same, and "" without a repository.
	gitDir, commonDir string
	program           program
}

// locate finds the git folders of the working tree at root, if it has any, and the program.
func (s Scratch) locate(root string, own bool) (r source, err error) {
	r.root = root
	if !own {
		r, err = sourceOf(root)
	}
	if err == nil {
		r.program, err = s.find(os.Environ(), root)
	}
	return r, err
}

// sourceOf finds the git folders of the working tree at root.
func sourceOf(root string) (r source, err error) {
	r.root = root
	if r.gitDir, r.commonDir, err = folders(root); err != nil {
		return r, err
	}
	main := r.gitDir == r.commonDir // no worktree
	if r.gitDir, err = realFolder(r.gitDir); err != nil {
		return r, err
	}
	if main {
		r.commonDir = r.gitDir
		return r, nil
	}
	r.commonDir, err = realFolder(r.commonDir)
	return r, err
}

// realFolder returns the path of a folder without symbolic links.
func realFolder(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Lstat(real); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", path)
	}
	return real, nil
}

// mirror is the git folder on which git runs instead of a repository's own. It has a
// configuration of this package, and the repository's refs and objects by reference. Git writes
// only in it. It is made when git first runs.
type mirror struct {
	source
	place    Scratch
	settings map[string]string // of the repository and the user
	scratch  string            // the temporary folder, or "" before it is made
	made     bool
	confined *box.Confinement
	held     *os.File // the temporary folder, locked; or nil
}

// open returns the mirror of a repository. The caller must call remove.
func (s Scratch) open(ctx context.Context, r source) (m *mirror, err error) {
	m = &mirror{source: r, place: s}
	if m.settings, err = m.configuration(ctx); err != nil {
		return nil, errors.Join(err, m.remove())
	}
	return m, nil
}

// mirrorPrefix begins the name of a temporary folder.
const mirrorPrefix = "git-"

// reserve makes the temporary folder, in which git may write.
func (m *mirror) reserve() error {
	if m.scratch != "" {
		return nil
	}
	err := os.MkdirAll(m.place.Dir, 0o700)
	dir := m.place.Dir
	if err == nil {
		dir, err = filepath.Abs(dir) // git runs in another folder
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	for held := false; err == nil && !held; { // another process may take it for one of a killed process, and remove it
		if m.scratch, err = os.MkdirTemp(dir, mirrorPrefix+"*"); err == nil {
			held, err = m.hold()
		}
	}
	if err == nil {
		m.confined, err = m.program.programs.Confine(m.scratch)
	}
	if err != nil {
		return errors.Join(err, m.remove())
	}
	return nil
}

// hold locks the temporary folder until it is removed or the process ends, so that [Scratch.Sweep]
// of another process leaves it. It returns false if that process was faster. Where folders cannot be
// locked, Sweep removes nothing.
func (m *mirror) hold() (bool, error) {
	f, err := os.Open(m.scratch)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	locked := safefile.Share(f)
	mine, err := f.Stat()
	found, failed := os.Lstat(m.scratch)
	there := err == nil && failed == nil && os.SameFile(mine, found)
	if locked == nil && there {
		m.held = f
		return true, nil
	}
	_ = f.Close()
	return there && locked != nil && !errors.Is(locked, safefile.ErrLocked), nil
}

func (m *mirror) remove() (err error) {
	if m.scratch != "" {
		err = os.RemoveAll(m.scratch)
	}
	if m.held != nil {
		_ = m.held.Close() // which unlocks it
		m.held = nil
	}
	m.scratch, m.made = "", false
	return err
}

// folder returns the git folder.
func (m *mirror) folder() string { return filepath.Join(m.scratch, "git") }

// git runs git on the mirror and the working tree.
func (m *mirror) git(ctx context.Context, c call, args ...string) (string, error) {
	if err := m.make(); err != nil {
		return "", err
	}
	c.dir, c.confined = m.root, m.confined
	c.env = slices.Concat(withoutUser, []string{"GIT_DIR=" + m.folder(), "GIT_WORK_TREE=" + m.root})
	if c.index != "" {
		c.env = append(c.env, "GIT_INDEX_FILE="+filepath.Join(m.scratch, c.index))
	}
	return m.program.run(ctx, c, args...)
}

// ownFiles are the files of a repository with its patterns of what to ignore, and its attributes.
var ownFiles = []string{"info/exclude", "info/attributes"}

// sharedFiles are the files and folders of a repository with its refs, and with where its history ends.
// Git waits for none of them.
var sharedFiles = []string{"packed-refs", "shallow", "refs", "reftable"}

// make makes the mirror, without an index, unless it is made.
func (m *mirror) make() (err error) {
	if m.made {
		return nil
	}
	if err := m.reserve(); err != nil {
		return err
	}
	objects := filepath.Join(m.folder(), "objects")
	for _, dir := range []string{filepath.Join(m.folder(), "info"), filepath.Join(objects, "info"), filepath.Join(objects, "pack")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	head := []byte("ref: refs/heads/main\n")
	if m.gitDir == "" { // there is no repository
		err = os.Mkdir(filepath.Join(m.folder(), "refs"), 0o700)
	} else {
		if head, err = readHead(m.gitDir, m.commonDir); err == nil {
			err = m.share()
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(objects, "info", "alternates"), []byte(quoted(filepath.Join(m.commonDir, "objects"))+"\n"), 0o600)
		}
	}
	err = cmp.Or(err, os.WriteFile(filepath.Join(m.folder(), "HEAD"), head, 0o600), m.configure())
	m.made = err == nil
	return err
}

// share copies the small files of the repository, and links those with refs.
func (m *mirror) share() error {
	for _, name := range ownFiles {
		name = filepath.FromSlash(name)
		data, err := safefile.Read(filepath.Join(m.commonDir, name), maxSmallFile)
		if err == nil {
			err = os.WriteFile(filepath.Join(m.folder(), name), data, 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if file := filepath.Join(m.commonDir, "objects", "info", "alternates"); special(file) {
		return fmt.Errorf("%s is not a regular file", file)
	}
	for _, name := range sharedFiles {
		file := filepath.Join(m.commonDir, name)
		if special(file) {
			return fmt.Errorf("%s is not a regular file", file)
		}
		if _, err := os.Stat(file); err != nil {
			continue
		}
		if err := os.Symlink(file, filepath.Join(m.folder(), name)); err != nil {
			return err
		}
	}
	return nil
}

// readHead returns the content of HEAD. The file of a branch must be a regular one, or git would wait
// for it.
func readHead(gitDir, commonDir string) ([]byte, error) {
	file := filepath.Join(gitDir, "HEAD")
	var head []byte
	if target, err := os.Readlink(file); err == nil && strings.HasPrefix(filepath.ToSlash(target), "refs/") {
		head = []byte("ref: " + filepath.ToSlash(target) + "\n")
	} else if head, err = safefile.Read(file, maxSmallFile); err != nil {
		return nil, err
	}
	if name, ok := strings.CutPrefix(string(head), "ref:"); ok {
		if file := filepath.Join(commonDir, filepath.FromSlash(strings.TrimSpace(name))); special(file) {
			return nil, fmt.Errorf("%s is not a regular file", file)
		}
	}
	return head, nil
}

// again makes a copy of an index of the mirror, with its time.
func (m *mirror) again(to, from string) error {
	from, to = filepath.Join(m.scratch, from), filepath.Join(m.scratch, to)
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return cmp.Or(os.WriteFile(to, data, 0o600), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// attributes calls f for each file and attribute.
func (l *look) attributes(ctx context.Context, files, names []string, f func(file, name, value string)) error {
	if len(files) == 0 {
		return nil
	}
	out, err := l.git(ctx, call{stdin: zeros(files)}, append([]string{"check-attr", "-z", "--stdin"}, names...)...)
	if err != nil {
		return err
	}
	for fields := strings.Split(out, "\x00"); len(fields) >= 3; fields = fields[3:] {
		f(fields[0], fields[1], fields[2])
	}
	return nil
}

// zeros joins names as a command reads them from its input.
func zeros(names []string) string { return strings.Join(names, "\x00") + "\x00" }
