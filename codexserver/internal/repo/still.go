package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// still is the look at a working tree in which each file is as the repository's index says, and
// there is no other but those that are held and those that git ignores, or at a folder without a
// repository that is empty. As long as that stays so, git is not needed.
type still struct {
	source
	// data is the index's file, of the time at. A large one is in kept instead, which has nothing
	// else. Small are other files of git.
	data  string
	kept  *private
	at    time.Time
	small map[string][]byte
	held  map[string]held
	// ignored are the names that git ignores, by folder with a slash at its end; true for a folder.
	// They are so by these files and by the user's patterns.
	ignored map[string]map[string]bool
	user    []byte
}

// maxStill is the size of the largest index in bytes that a snapshot keeps in memory, that of about
// 10,000 files.
const maxStill = 1 << 20

// margin is how long before a snapshot the files of a still tree have changed last. File systems
// that have times in parts of seconds have them in steps that are much shorter.
const margin = 100 * time.Millisecond

// still looks at the working tree, and returns nil unless it is still. Whatever is unusual, git must
// look at: a file that is not checked out or in conflict, a submodule, a special file, an index of
// several parts, more new and changed files than fit into memory. Nor may the configuration say that
// modes do not count.
func (s *Snapshot) still(ctx context.Context, r source, scratch Scratch, begin time.Time) *still {
	x := &still{source: r, small: map[string][]byte{}}
	if s.own {
		if !isStill(ctx, s.root, nil, nil, nil) {
			return nil
		}
		return x
	}
	for _, name := range ownFiles {
		data, err := safefile.Read(filepath.Join(r.commonDir, filepath.FromSlash(name)), maxSmallFile)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		x.small[name] = data
	}
	text := strings.ToLower(string(r.config))
	if strings.Count(text, "filemode") != strings.Count(text, "filemode = true") {
		return nil
	}
	f, err := safefile.Open(filepath.Join(r.gitDir, "index"))
	if err != nil {
		return nil
	}
	defer f.Close()
	x.at = f.Info().ModTime()
	if x.data, err = readText(f, maxRead); err != nil {
		return nil
	}
	all, ok := parseIndex(x.data, 20)
	if !ok {
		return nil
	}
	newest := begin.Add(-margin)
	for i := range all {
		e := &all[i]
		if e.assumed || e.skipped || i > 0 && e.name == all[i-1].name {
			return nil
		}
		last := max(nanos(e.modified, e.modifiedNanos), nanos(e.changed, e.nanos))
		if e.modifiedNanos == 0 || e.nanos == 0 || last >= min(x.at.UnixNano(), newest.UnixNano()) {
			e.changed = 0 // it may have changed since, so it is looked at as if it had
		}
	}
	found := finds{most: min(maxHeld, s.files)}
	if paths.Below(s.scratch, s.root) {
		found.most = 0
	}
	if !isStill(ctx, s.root, all, nil, &found) || len(found.changed)+len(found.others) > 0 && !x.hold(ctx, s.root, all, found, newest) {
		return nil
	}
	if len(x.data) > maxStill && x.keep(scratch) != nil {
		return nil
	}
	s.before.seen.ignored = ignoredNames(x.ignored)
	return x
}

// readText reads the rest of a file into one text.
func readText(f *safefile.File, most int64) (string, error) {
	var b strings.Builder
	b.Grow(int(min(f.Info().Size(), most)))
	n, err := io.Copy(&b, io.LimitReader(f, most+1))
	if err == nil && n > most {
		err = &safefile.SizeError{Max: most}
	}
	return b.String(), err
}

// keep moves the index from the memory to a file.
func (x *still) keep(scratch Scratch) error {
	p, err := scratch.reserve(x.source)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(p.dir, 0o700), x.write(p)); err != nil {
		return errors.Join(err, p.remove())
	}
	x.data, x.kept = "", p
	return nil
}

// write writes the index to a private git folder.
func (x *still) write(p *private) error {
	file := filepath.Join(p.dir, "index")
	if err := writeText(file, x.data); err != nil {
		return err
	}
	return os.Chtimes(file, time.Time{}, x.at)
}

// remains reports whether the working tree at root is still as it was, and if not, what is new, nil if
// git must look.
func (x *still) remains(ctx context.Context, root string) (bool, *newly) {
	if x.gitDir == "" {
		return isStill(ctx, root, nil, nil, nil), nil
	}
	data := x.data
	if x.kept != nil {
		f, err := safefile.Open(filepath.Join(x.kept.dir, "index"))
		if err != nil {
			return false, nil
		}
		data, err = readText(f, maxRead)
		if errors.Join(err, f.Close()) != nil {
			return false, nil
		}
	}
	all, ok := parseIndex(data, 20)
	tree := ""
	if ok && len(x.held) == 0 {
		tree = cachedTree(data, all)
	}
	found := finds{most: maxHeld}
	all = x.now(all)
	switch {
	case !ok || !isStill(ctx, root, all, x.ignored, &found) || x.user != nil && !bytes.Equal(x.user, x.excludes()):
		return false, nil
	case len(found.changed)+len(found.others) == 0:
		return true, nil
	}
	n := x.news(ctx, root, tree, all, found)
	if n != nil {
		n.data = data
	}
	return false, n
}

// present returns an error if the index of a repository is not there any more, such as after an earlier
// failure. Without it each file would look new.
func (x *still) present() (err error) {
	switch {
	case x.kept != nil:
		_, err = os.Lstat(filepath.Join(x.kept.dir, "index"))
	case x.gitDir != "" && x.data == "":
		err = fs.ErrNotExist
	}
	if err != nil {
		return fmt.Errorf("the index as it was: %w", err)
	}
	return nil
}

// remove deletes what the look keeps.
func (x *still) remove() error {
	if x.kept == nil {
		return nil
	}
	return x.kept.remove()
}

func nanos(seconds, part uint32) int64 { return int64(seconds)*1e9 + int64(part) }

// prepare makes a private git folder with git's files as they were, without the index.
func (x *still) prepare(ctx context.Context, p *private) error {
	p.source, p.files = x.source, x.small
	return p.prepare(ctx)
}

// wake makes the private git folder of a snapshot whose tree is no longer still, with git's files
// as they were. Tree is that of the files as they were, if it is known.
func (s *Snapshot) wake(ctx context.Context, tree string) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Remove())
		}
	}()
	x := s.quiet
	if err := x.present(); err != nil {
		return err
	}
	if err := x.configure(ctx, s.scratch); err != nil {
		return err
	}
	p := x.kept
	if p == nil {
		if p, err = (Scratch{Dir: s.scratch}).reserve(x.source); err != nil {
			return err
		}
	}
	x.kept, s.private = nil, p
	if err := x.prepare(ctx, p); err != nil {
		return err
	}
	if x.data != "" {
		if err := x.write(p); err != nil {
			return err
		}
	}
	if err := x.lay(ctx, p); err != nil {
		return err
	}
	if s.before.tree = tree; tree != "" {
		s.quiet = nil
		return nil
	}
	if s.before.tree, err = p.line(ctx, call{}, "write-tree", "--missing-ok"); err == nil {
		s.quiet = nil
	}
	return err
}
