package git

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// Usage is what worktrees take of the disk.
type Usage struct {
	// Bytes are those of all, and Trees those of each, the largest first.
	Bytes int64
	Trees []TreeUsage
	// Cut is true if looking took too long, and some is not counted.
	Cut bool
}

// TreeUsage is what a worktree takes.
type TreeUsage struct {
	// Path is its folder, and Root the working tree that it was made for, "" if that is not known.
	Path, Root string
	Bytes      int64
}

// usageTimeout is how long looking may take.
const usageTimeout = 10 * time.Second

// inode names a file.
type inode struct{ device, number uint64 }

// Usage returns what the worktrees below the folder trees take, where it could be looked at. A file with several names counts
// once, and a symbolic link is not followed.
func (s Scratch) Usage(ctx context.Context, trees string) (u Usage, err error) {
	ctx, stop := context.WithTimeout(ctx, usageTimeout)
	defer stop()
	trees = paths.Real(trees)
	entries, err := os.ReadDir(trees)
	if os.IsNotExist(err) {
		return u, nil
	}
	counted := map[inode]bool{}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		one := TreeUsage{Path: filepath.Join(trees, e.Name())}
		one.Bytes = usage(ctx, one.Path, counted)
		if w, _ := s.FindWorktree(trees, one.Path); w != nil {
			one.Root = w.Root
		}
		u.Bytes += one.Bytes
		u.Trees = append(u.Trees, one)
	}
	slices.SortStableFunc(u.Trees, func(a, b TreeUsage) int { return cmp.Compare(b.Bytes, a.Bytes) })
	u.Cut = ctx.Err() != nil
	return u, err
}

// usage returns how many bytes a folder takes with all in it that is not counted yet. Commands may change it meanwhile.
func usage(ctx context.Context, folder string, counted map[inode]bool) (bytes int64) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return 0
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(_ string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return fs.SkipAll
		}
		if err != nil || e == nil {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		size, file, several := space(info)
		if several && !info.IsDir() {
			if counted[file] {
				return nil
			}
			counted[file] = true
		}
		bytes += size
		return nil
	})
	return bytes
}
