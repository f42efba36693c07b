package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Limits of a look. Those of a folder without a repository are lower, because git must
// read all of its files.
const (
	defaultFiles = 100_000
	maxBytes     = 256 << 20 // bytes of the files that differ from the index, so that git must read them
	ownShare     = 20        // without a repository one of 20 files
	maxOwnBytes  = 64 << 20
	maxContent   = 16 << 20 // bytes of one file; a larger one is compared by its size and times
)

// errLarge begins the error for a folder that is too large for a look.
var errLarge = errors.New("too large for a snapshot")

// look is the content of one folder at a moment: the whole working tree of a repository without
// ignored files, or a folder without one. The index of the mirror has it.
type look struct {
	*mirror
	at    string // the path as in the changes, with a slash at its end; "" for the first
	gone  string // why it could not be looked at or compared
	files int    // how many files git may read
	// withheld is that of [Options]: only the first look is in a diff.
	withheld func(path string) error
	// What was written from this moment on may have been written after the look, as the clock of the
	// file system and the one of this system show.
	since         time.Time
	modules       []string        // the submodules of the index
	giving        map[string]bool // files that may give attributes to others
	kept          map[string]span // the content of the files that differ from the index
	tracked       map[string]stat // the files of the index that could change without git's notice
	real          map[string]bool // whether folders are not behind a link, as far as the present look knows
	before, after content
	changes       []Change
}

// content is what is in a folder, as far as it differs from the index.
type content struct {
	seen    map[string]stat  // the files that differ or are new, and those that are gone
	new     map[string]bool  // those of them that the index does not have
	others  map[string]other // what git does not store
	ignored []string         // files that git ignores; a folder ends with a slash
	unread  []Gap
}

// other is what git does not store: a file that is too large or cannot be read, a special file, or
// another repository, whose name ends with a slash.
type other struct {
	why    string // it is not in a diff
	is     stat   // what shows that it has changed
	commit string // the same of a submodule, if its git folder has usual files
}

// Reasons why git does not store a file.
const (
	tooLarge        = "too large"
	notStored       = tooLarge + ", or it cannot be read"
	specialFile     = "a special file"
	otherRepository = "another repository"
)

// take looks at a folder.
func take(ctx context.Context, root string, o *Options) (*look, error) {
	l := &look{giving: map[string]bool{}, files: cmp.Or(o.Files, defaultFiles), since: time.Now().Add(-coarse)}
	m, err := o.Scratch.open(root)
	if err != nil {
		return nil, err
	}
	m.look = true
	if l.mirror = m; m.gitDir == "" {
		l.files /= ownShare
	}
	if err = m.make(ctx); err == nil {
		err = l.begin(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, l.remove())
	}
	return l, nil
}

// begin looks for the first time.
func (l *look) begin(ctx context.Context) error {
	written, err := l.copyIndex()
	var names []string
	if err == nil && !written.IsZero() {
		names, err = l.unflag(ctx)
	}
	if err == nil {
		l.before, err = l.see(ctx)
	}
	if err != nil {
		return err
	}
	// Git compares times in seconds, and a file that has other line ends is the same for it.
	if !written.Before(l.since) || l.converts() {
		l.tracked = map[string]stat{}
		for _, name := range names {
			l.tracked[name], _ = lstat(l.path(name))
		}
	}
	return l.keep()
}

// unflag makes git look at each file of the index that is there, and not see those that are not checked out. It returns
// the names of the files.
func (l *look) unflag(ctx context.Context) (names []string, err error) {
	// For each file a letter, the mode, the object, the stage, and after a tab the name.
	listed, err := l.git(ctx, call{}, "ls-files", "-v", "--stage", "-z")
	var flags strings.Builder
	for line := range strings.SplitSeq(listed, "\x00") {
		head, name, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		hidden := head[0] == 'S' || head[0] == 's'
		switch {
		case !isName(name):
			continue
		case strings.HasPrefix(head[2:], modeModule):
			l.modules = append(l.modules, name)
			continue
		case hidden && !exists(l.path(name)):
			fmt.Fprintf(&flags, "0 %s\t%s\x00", strings.Fields(head)[2], name)
			continue
		case hidden || head[0] >= 'a': // a small letter is that of a file that git assumes unchanged
			fmt.Fprintf(&flags, "%s\t%s\x00", head[2:], name)
		default:
			names = append(names, name)
		}
		if gives(name) {
			l.giving[name] = true
		}
	}
	if err == nil && flags.Len() > 0 {
		_, err = l.git(ctx, call{stdin: flags.String()}, "update-index", "-z", "--index-info")
	}
	return names, err
}

// isName reports whether git may have a file of that name in a working tree. The index could have others.
func isName(name string) bool {
	for part := range strings.SplitSeq(strings.TrimSuffix(name, "/"), "/") {
		if part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git") {
			return false
		}
	}
	return true
}

// maxIndex is the size of the largest index in bytes.
const maxIndex = 1 << 30

// gives reports whether a file may give attributes to others.
func gives(name string) bool {
	const last = ".gitattributes"
	return len(name) >= len(last) && strings.EqualFold(name[len(name)-len(last):], last)
}

// now describes a file, which is not behind a link.
func (l *look) now(name string) stat {
	folder := name[:strings.LastIndexByte(name, '/')+1]
	is, known := l.real[folder]
	if !known {
		dir := filepath.Clean(l.path(folder))
		is = paths.Real(dir) == dir
		l.real[folder] = is
	}
	if !is {
		return stat{}
	}
	s, _ := lstat(l.path(name))
	return s
}

// see asks git what differs from the mirror's index, and finds what git does not tell.
func (l *look) see(ctx context.Context) (content, error) {
	r := content{seen: map[string]stat{}, new: map[string]bool{}, others: map[string]other{}}
	if _, err := os.Stat(l.root); err != nil {
		return r, err
	}
	if l.gitDir != "" && !exists(l.gitDir) {
		return r, errors.New("its repository is gone")
	}
	out, err := l.git(ctx, call{}, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching",
		"--no-renames", "--ignore-submodules=all")
	if err != nil {
		return r, err
	}
	l.real = map[string]bool{}
	left := int64(maxBytes)
	if l.gitDir == "" {
		left = maxOwnBytes
	}
	for line := range strings.SplitSeq(out, "\x00") {
		if len(line) < 4 || line[1] == ' ' { // two letters, of which the second one is that of the working tree
			continue
		}
		switch state, name := line[:2], line[3:]; {
		case l.inScratch(name), !isName(name):
		case state == "!!":
			r.ignored = append(r.ignored, name)
		case strings.HasSuffix(name, "/"):
			r.others[name] = other{why: otherRepository}
		default:
			s := l.now(name)
			if r.seen[name], r.new[name] = s, state == "??"; s.is(modeFile) && s.size > maxContent {
				r.others[name] = other{why: notStored, is: s}
			} else if s.is(modeFile) {
				left -= s.size
			}
			if gives(name) {
				l.giving[name] = true
			}
		}
	}
	switch {
	case len(r.seen) > l.files:
		return r, fmt.Errorf("%w: %d files, and at most %d may be read", errLarge, len(r.seen), l.files)
	case left < 0:
		return r, fmt.Errorf("%w: its new and changed files have too many bytes", errLarge)
	}
	for _, name := range l.modules {
		if gitDir, commonDir, err := folders(l.path(name)); err == nil {
			commit, _, _ := plainHead(gitDir, commonDir)
			r.others[name+"/"] = other{why: otherRepository, commit: commit}
		} else if entries, err := os.ReadDir(l.path(name)); err == nil && len(entries) > 0 {
			r.unread = append(r.unread, Gap{name + "/", "it is a submodule without a repository"})
		}
	}
	skip := map[string]bool{}
	for _, name := range r.ignored {
		skip[name] = true
	}
	return r, l.walk(ctx, "", func(name string, mode fs.FileMode, err error) bool {
		switch _, isOther := r.others[name+"/"]; {
		case err != nil:
			r.unread = append(r.unread, Gap{name + "/", "it cannot be read"})
		case mode.IsDir():
			return !isOther && !skip[name+"/"] && !l.inScratch(name) && filepath.Base(name) != ".git"
		case mode&fs.ModeSymlink == 0:
			r.others[name] = other{why: specialFile, is: stat{mode: uint32(mode.Type())}}
		}
		return true
	})
}

// walk goes through a folder. It calls f for each folder, into which it goes if f returns true, for each file that is not
// a regular one, and for each folder that it cannot read, with the error.
func (m *mirror) walk(ctx context.Context, dir string, f func(name string, mode fs.FileMode, err error) bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	entries, err := readFolder(m.path(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f(dir, fs.ModeDir, err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			continue
		}
		if name := path.Join(dir, e.Name()); f(name, e.Type(), nil) && e.IsDir() {
			if err := m.walk(ctx, name, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// patience is how long git may take before a look searches for a special file for which git could wait.
const patience = 500 * time.Millisecond

// git runs git on the mirror. Git reads some files in each folder: it fails if one of them is a special file.
func (l *look) git(ctx context.Context, c call, args ...string) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var searching sync.WaitGroup
	defer searching.Wait()
	defer cancel(nil)
	searching.Go(func() {
		select {
		case <-ctx.Done():
		case <-time.After(patience):
			_ = l.walk(ctx, "", func(name string, mode fs.FileMode, _ error) bool {
				if !mode.IsDir() && mode&fs.ModeSymlink == 0 && isRead(name) {
					cancel(&safefile.KindError{Path: l.path(name), Mode: mode})
				}
				return true
			})
		}
	})
	return l.mirror.git(ctx, c, args...)
}

// isRead reports whether git reads a file of that name in each folder, or in each repository.
func isRead(name string) bool {
	switch dir, base := filepath.Split(strings.ToLower(name)); base {
	case ".gitattributes", ".gitignore", ".gitmodules":
		return true
	case "head", "commondir":
		return strings.HasSuffix(dir, ".git/")
	}
	return false
}

// copyIndex copies the repository's index with the time when it was written, and returns that, or zero without an index.
func (m *mirror) copyIndex() (written time.Time, err error) {
	file := filepath.Join(m.gitDir, "index")
	info, err := os.Stat(file)
	if m.gitDir == "" || errors.Is(err, fs.ErrNotExist) {
		return written, nil
	}
	if err != nil {
		return written, err
	}
	data, err := safefile.Read(file, maxIndex)
	if err != nil {
		return written, err
	}
	parts, err := os.ReadDir(m.gitDir)
	if err != nil {
		return written, err
	}
	for _, part := range parts {
		if !strings.HasPrefix(part.Name(), "sharedindex.") || !part.Type().IsRegular() {
			continue
		}
		if err := os.Symlink(filepath.Join(m.gitDir, part.Name()), filepath.Join(m.folder(), part.Name())); err != nil {
			return written, err
		}
	}
	index := filepath.Join(m.scratch, "index")
	if err := os.WriteFile(index, data, 0o600); err != nil {
		return written, err
	}
	return info.ModTime(), os.Chtimes(index, info.ModTime(), info.ModTime())
}
