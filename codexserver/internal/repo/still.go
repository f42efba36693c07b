package repo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// still is the look at a working tree in which each file is as the repository's index says, and
// there is no other. As long as that stays so, git is not needed.
type still struct {
	source
	index index
	// data is the index's file, of the time at. Small are other files of git.
	data  string
	at    time.Time
	small map[string][]byte
}

// maxStill is the size of the largest index in bytes that a snapshot keeps in memory, that of about
// 10,000 files.
const maxStill = 1 << 20

// margin is how long before a snapshot the files of a still tree have changed last. File systems
// that have times in parts of seconds have them in steps that are much shorter.
const margin = 100 * time.Millisecond

// still looks at the working tree, and returns nil unless it is still. Whatever is unusual, git must
// look at: a file that is not checked out, in conflict or new, a submodule, a special file, an
// index of several parts. Nor may the configuration say that modes do not count.
func (s *Snapshot) still(ctx context.Context, r source, begin time.Time) *still {
	x := &still{source: r, small: map[string][]byte{}}
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
	data, err := f.ReadAll(maxStill)
	if err != nil {
		return nil
	}
	x.data = string(data)
	var ok bool
	if x.index, ok = parseIndex(x.data, 20); !ok {
		return nil
	}
	newest := min(x.at.UnixNano(), begin.Add(-margin).UnixNano())
	for i := range x.index {
		e := &x.index[i]
		last := max(unix(e.modified, e.modifiedNanos), unix(e.changed, e.nanos))
		if e.assumed || e.skipped || e.modifiedNanos == 0 || e.nanos == 0 || last >= newest || i > 0 && e.name == x.index[i-1].name {
			return nil
		}
	}
	if !s.isStill(ctx, x) {
		return nil
	}
	return x
}

func unix(seconds, nanos uint32) int64 { return int64(seconds)*1e9 + int64(nanos) }

// isStill reports whether the working tree is as the index says.
func (s *Snapshot) isStill(ctx context.Context, x *still) bool {
	for i := range x.index {
		e := &x.index[i]
		info, err := os.Lstat(s.path(e.name))
		if err != nil || ctx.Err() != nil || !e.is(info) {
			return false
		}
	}
	var n news
	seen := oddities{special: map[string]fs.FileMode{}, closed: map[string]bool{}}
	err := s.tour(ctx, "", x.index, &n, &seen)
	return err == nil && len(n.files)+len(n.folders)+len(seen.special)+len(seen.closed) == 0 && !n.replaced
}

// is reports whether a file is the one of the index, by its times and size.
func (e *indexed) is(info fs.FileInfo) bool {
	switch mode := info.Mode(); e.mode {
	case 0o100644, 0o100755:
		if !mode.IsRegular() || mode&0o100 != fs.FileMode(e.mode)&0o100 {
			return false
		}
	case 0o120000:
		if mode&fs.ModeSymlink == 0 {
			return false
		}
	default:
		return false
	}
	return uint32(info.Size()) == e.size && info.ModTime().UnixNano() == unix(e.modified, e.modifiedNanos) &&
		changeTime(info).UnixNano() == unix(e.changed, e.nanos)
}

// wake makes the private git folder of a snapshot whose tree is no longer still, with git's files
// as they were.
func (s *Snapshot) wake(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Remove())
		}
	}()
	x := s.quiet
	if err := x.configure(ctx, s.scratch); err != nil {
		return err
	}
	if s.private, err = newSnapshotFolder(ctx, x.source, Scratch{Dir: s.scratch}); err != nil {
		return err
	}
	for name, data := range x.small {
		if err := os.WriteFile(filepath.Join(s.private.common, filepath.FromSlash(name)), data, 0o600); err != nil {
			return err
		}
	}
	index := filepath.Join(s.private.dir, "index")
	if err := os.WriteFile(index, []byte(x.data), 0o600); err != nil {
		return err
	}
	if err := os.Chtimes(index, time.Time{}, x.at); err != nil {
		return err
	}
	if s.tree, err = s.private.line(ctx, call{}, "write-tree", "--missing-ok"); err == nil {
		s.quiet = nil
	}
	return err
}
