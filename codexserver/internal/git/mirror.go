package git

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// mirror is the git folder on which git runs instead of a repository's own. It has a configuration of this package, and
// the repository's refs and objects by reference. Git writes only in it. It is made when git first runs.
type mirror struct {
	program
	place Scratch
	root  string // the working tree, or a folder without a repository
	// only the working tree is compared: git needs no commit, which could be missing, and stores files as they are but for line ends
	look bool
	// gitDir is the git folder of the working tree, commonDir the one that it shares with
	// other working trees. They are often the same, and "" without a repository.
	gitDir, commonDir string
	settings          map[string]string // of the repository and the user
	includes          bool              // the repository's own configuration includes files
	attributes        []byte            // the repository's own, which are in no file of the working tree
	scratch           string            // the temporary folder, or "" before it is made
	// the folder of all mirrors, with a slash at its end, if it is in the working tree
	inside   string
	confined *box.Confinement
	held     *os.File // the temporary folder, locked
	contents *os.File // of the files that a look keeps
}

// open returns the mirror of the working tree at root, or of a folder without a repository. The caller must
// call remove.
func (s Scratch) open(root string) (m *mirror, err error) {
	m = &mirror{root: root, place: s, settings: map[string]string{}}
	if isTop(root) {
		if m.gitDir, m.commonDir, err = folders(root); err == nil {
			m.gitDir, err = filepath.EvalSymlinks(m.gitDir)
		}
		if err == nil {
			m.commonDir, err = filepath.EvalSymlinks(m.commonDir)
		}
	}
	if err == nil {
		m.program, err = s.find(root)
	}
	return m, err
}

// mirrorPrefix begins the name of a temporary folder.
const mirrorPrefix = "git-"

// reserve makes the temporary folder, in which git may write. It is locked until it is removed or the process ends, so
// that [Scratch.Sweep] of another process leaves it. Where folders cannot be locked, Sweep removes nothing.
func (m *mirror) reserve() error {
	dir, err := filepath.Abs(m.place.Dir) // git runs in another folder
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if rel, ok := paths.Within(dir, m.root); ok && err == nil {
		m.inside = filepath.ToSlash(rel) + "/"
	}
	for err == nil && m.held == nil {
		var f *os.File
		if m.scratch, err = os.MkdirTemp(dir, mirrorPrefix+"*"); err == nil {
			f, err = os.Open(m.scratch)
		}
		if err == nil && !errors.Is(safefile.Share(f), safefile.ErrLocked) && exists(m.scratch) {
			m.held = f
		} else if _ = f.Close(); errors.Is(err, fs.ErrNotExist) {
			err = nil // another process has taken it for one of a killed process
		}
	}
	return err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (m *mirror) remove() error {
	err := os.RemoveAll(m.scratch) // nothing before it is made
	_ = m.held.Close()             // which unlocks it
	_ = m.contents.Close()
	m.scratch, m.held = "", nil
	return err
}

// Sweep removes the folders of processes that were killed.
func (s Scratch) Sweep(ctx context.Context) error {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !e.IsDir() || !strings.HasPrefix(e.Name(), mirrorPrefix) {
			continue
		}
		dir := filepath.Join(s.Dir, e.Name())
		if f, failed := os.Open(dir); failed == nil {
			if safefile.Lock(f) == nil {
				err = errors.Join(err, os.RemoveAll(dir))
			}
			_ = f.Close()
		}
	}
	return err
}

// path returns where a file is. It is not cleaned, because a look asks for thousands.
func (m *mirror) path(name string) string {
	return m.root + string(filepath.Separator) + filepath.FromSlash(name)
}

// inScratch reports whether a file belongs to a mirror.
func (m *mirror) inScratch(name string) bool {
	return m.inside != "" && strings.HasPrefix(name, m.inside)
}

func (m *mirror) folder() string { return filepath.Join(m.scratch, "git") }

// git runs git on the mirror and the working tree.
func (m *mirror) git(ctx context.Context, c call, args ...string) (string, error) {
	if err := m.make(ctx); err != nil {
		return "", err
	}
	c.dir, c.confined = cmp.Or(c.tree, m.root), m.confined
	c.env = slices.Concat(withoutUser, []string{"GIT_DIR=" + m.folder(), "GIT_INDEX_FILE=" +
		filepath.Join(m.scratch, "index")}, c.env)
	if !c.bare {
		c.env = append(c.env, "GIT_WORK_TREE="+c.dir)
	}
	if file := m.userFile("core.excludesfile", ""); file != "" {
		c.options = append([]string{"-c", "core.excludesFile=" + file}, c.options...)
	}
	return m.run(ctx, c, args...)
}

// shared are the files and folders of a repository with its refs, where its history ends, what it ignores, and its
// objects, by their names in the mirror.
var shared = []struct{ name, to string }{
	{"packed-refs", "packed-refs"}, {"shallow", "shallow"}, {"refs", "refs"}, {"reftable", "reftable"},
	{"info/exclude", "info/exclude"}, {"objects", "lent"},
}

// make makes the mirror, without an index, unless it is made.
func (m *mirror) make(ctx context.Context) error {
	if m.scratch != "" {
		return nil
	}
	if err := m.fill(ctx); err != nil {
		return errors.Join(err, m.remove())
	}
	return nil
}

func (m *mirror) fill(ctx context.Context) (err error) {
	if err = m.reserve(); err == nil {
		m.confined, err = m.programs.Confine(m.scratch)
	}
	for _, dir := range []string{"info", "objects/info"} {
		if err == nil {
			err = os.MkdirAll(filepath.Join(m.folder(), dir), 0o700)
		}
	}
	head, line := "ref: refs/heads/.none", endsOnly
	switch {
	case err != nil:
		return err
	case m.gitDir == "":
		err = os.Mkdir(filepath.Join(m.folder(), "refs"), 0o700)
	default:
		err = m.share()
	}
	if !m.look && err == nil {
		line = ""
		var ref, commit string
		if ref, commit, err = readHead(m.gitDir); ref != "" {
			commit = "ref: " + ref
		}
		head = commit
	}
	if err == nil {
		err = errors.Join(m.put("HEAD", head), m.put("objects/info/alternates", "../lent"), m.setAttributes(line))
	}
	if err == nil {
		err = m.readSettings(ctx)
	}
	if err != nil {
		return err
	}
	if config, statErr := os.Stat(filepath.Join(m.commonDir, "config")); statErr == nil && config.Mode()&0o111 == 0 {
		// modes count if the file system keeps them: else git's own files seem to be programs
		m.settings["core.filemode"] = "true"
	}
	return m.put("config", m.config())
}

// put writes a file of the mirror.
func (m *mirror) put(name, text string) error {
	return os.WriteFile(filepath.Join(m.folder(), name), []byte(text+"\n"), 0o600)
}

// share reads the repository's attributes, and links what git reads of the others.
func (m *mirror) share() error {
	if err := m.regular(); err != nil {
		return err
	}
	var err error
	if m.attributes, err = m.small("info/attributes"); err != nil {
		return err
	}
	for _, s := range shared {
		to := filepath.Join(m.commonDir, s.name)
		if !exists(to) {
			continue
		}
		if err := os.Symlink(to, filepath.Join(m.folder(), s.to)); err != nil {
			return err
		}
	}
	return nil
}

// regular returns an error that names a special file of the repository for which git could wait, or which it could read
// without end. It looks at the ref of HEAD and in readFolders.
func (m *mirror) regular() error {
	special := func(file string) error {
		info, err := os.Stat(file)
		// git does not open a socket, which its monitor may have there
		if err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice) != 0 {
			return &safefile.KindError{Path: file, Mode: info.Mode()}
		}
		return nil
	}
	ref, _, err := readHead(m.gitDir)
	if err == nil {
		err = special(filepath.Join(m.commonDir, ref))
	}
	if err != nil {
		return err
	}
	return filepath.WalkDir(m.commonDir, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.Type().IsRegular(): // git says the error
			return nil
		case !d.IsDir():
			return special(file)
		}
		if rel, _ := filepath.Rel(m.commonDir, file); !readFolders.Get().MatchString(filepath.ToSlash(rel)) {
			return fs.SkipDir
		}
		return nil
	})
}

// readFolders matches the folders of a repository in which git reads refs, and files by fixed names.
var readFolders = lazyregexp.Regexp{Text: `(?s)^(\.|(info|refs|reftable|objects/info)(/.*)?|objects(/pack)?|` +
	`worktrees(/[^/]*)?)$`}

// small returns a small file of the repository, which may be missing.
func (m *mirror) small(name string) ([]byte, error) {
	data, err := safefile.Read(filepath.Join(m.commonDir, name), maxSmallFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return data, err
}

// setAttributes makes the repository's own attributes count, and before them those of another line.
func (m *mirror) setAttributes(line string) error {
	return m.put("info/attributes", string(m.attributes)+"\n"+line)
}

// zeros returns names as a command reads them from its input.
func zeros(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(name + "\x00")
	}
	return b.String()
}
