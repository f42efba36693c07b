package repo

import (
	"context"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// maxDeep is how deep the folders of a still tree are, because each takes a file descriptor.
const maxDeep = 64

// isStill reports whether the working tree at root has the files of the index as it says, and no
// others. It asks for each file below the descriptor of its folder, which takes a third of the time
// that its whole path takes, and follows no symbolic link.
func isStill(ctx context.Context, root string, x index) bool {
	l := looker{ctx: ctx, buf: make([]byte, 32<<10)}
	return l.folder(unix.AT_FDCWD, root, 0, x)
}

// looker looks at folders, one after another.
type looker struct {
	ctx  context.Context
	buf  []byte // for the names of one
	stat unix.Stat_t
	deep int
}

// folder looks at the folder with a name in at, whose path in the index has a number of bytes. X are
// the files below it.
func (l *looker) folder(at int, name string, path int, x index) bool {
	if l.deep == maxDeep || l.ctx.Err() != nil {
		return false
	}
	dir, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	l.deep++
	defer func() { l.deep-- }()
	names, ok := l.names(dir)
	if !ok {
		return false
	}
	// Each name of the index is there once, so there is no other if there are as many.
	for found := 0; ; found++ {
		if len(x) == 0 {
			return found == len(names)
		}
		child, _, isFolder := strings.Cut(x[0].name[path:], "/")
		if _, ok := slices.BinarySearch(names, child); !ok {
			return false
		}
		if !isFolder {
			if unix.Fstatat(dir, child, &l.stat, unix.AT_SYMLINK_NOFOLLOW) != nil || !x[0].is(&l.stat) {
				return false
			}
			x = x[1:]
			continue
		}
		below := path + len(child) + 1
		prefix := x[0].name[:below]
		end := sort.Search(len(x), func(i int) bool { return x[i].name > prefix && !strings.HasPrefix(x[i].name, prefix) })
		if !l.folder(dir, child, below, x[:end]) {
			return false
		}
		x = x[end:]
	}
}

// names returns what is in a folder, sorted, without git's own folder.
func (l *looker) names(dir int) (names []string, ok bool) {
	for {
		n, err := unix.Getdents(dir, l.buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, false
		case n == 0:
			slices.Sort(names)
			if i, ok := slices.BinarySearch(names, ".git"); ok {
				names = slices.Delete(names, i, i+1)
			}
			return names, true
		}
		_, _, names = unix.ParseDirent(l.buf[:n], -1, names)
	}
}

// is reports whether a file is the one of the index, by its times and size.
func (e *indexed) is(stat *unix.Stat_t) bool {
	switch e.mode {
	case 0o100644, 0o100755:
		if stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Mode&0o100 != e.mode&0o100 {
			return false
		}
	case 0o120000:
		if stat.Mode&unix.S_IFMT != unix.S_IFLNK {
			return false
		}
	default:
		return false
	}
	return uint32(stat.Size) == e.size && stat.Mtim.Nano() == nanos(e.modified, e.modifiedNanos) && stat.Ctim.Nano() == nanos(e.changed, e.nanos)
}
