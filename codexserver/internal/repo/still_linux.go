package repo

import (
	"context"
	"encoding/binary"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxDeep is how deep the folders of a still tree are, because each takes a file descriptor.
const maxDeep = 64

// isStill reports whether the working tree at root has the files of the index as it says, and no
// others but those that are ignored, by folder and with true for a folder. It asks for each file below
// the descriptor of its folder, which takes a third of the time that its whole path takes, and follows
// no symbolic link. With found it adds what differs there, as long as that is not much.
func isStill(ctx context.Context, root string, x index, ignored map[string]map[string]bool, found *finds) bool {
	l := looker{ctx: ctx, buf: make([]byte, 32<<10), ignored: ignored, found: found}
	return l.folder(unix.AT_FDCWD, root, 0, x)
}

// looker looks at folders, one after another.
type looker struct {
	ctx     context.Context
	buf     []byte // for the names of one
	stat    unix.Stat_t
	deep    int
	ignored map[string]map[string]bool
	found   *finds
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
	prefix := ""
	if len(x) > 0 {
		prefix = x[0].name[:path]
	}
	if in := l.ignored[prefix]; in != nil {
		names = slices.DeleteFunc(names, func(name string) bool {
			isDir, ok := in[name]
			return ok && unix.Fstatat(dir, name, &l.stat, unix.AT_SYMLINK_NOFOLLOW) == nil && isDir == (l.stat.Mode&unix.S_IFMT == unix.S_IFDIR)
		})
	}
	known := make([]bool, len(names)) // to the index
	for len(x) > 0 {
		child, _, isFolder := strings.Cut(x[0].name[path:], "/")
		i, there := slices.BinarySearch(names, child)
		if there {
			known[i] = true
		}
		if !isFolder {
			if there && unix.Fstatat(dir, child, &l.stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
				return false
			}
			if (!there || !x[0].is(&l.stat)) && !l.differs(&x[0], there) {
				return false
			}
			x = x[1:]
			continue
		}
		below := path + len(child) + 1
		inner := x[0].name[:below]
		end := sort.Search(len(x), func(i int) bool { return x[i].name > inner && !strings.HasPrefix(x[i].name, inner) })
		switch {
		case there:
			if !l.folder(dir, child, below, x[:end]) {
				return false
			}
		default:
			for i := range x[:end] {
				if !l.differs(&x[i], false) {
					return false
				}
			}
		}
		x = x[end:]
	}
	for i, name := range names {
		if known[i] {
			continue
		}
		if l.found == nil || l.found.full() {
			return false
		}
		l.found.others = append(l.found.others, prefix+name)
	}
	return true
}

// differs notes a file of the index that is not as it says. It reports false where git must look.
func (l *looker) differs(e *indexed, there bool) bool {
	regular := e.mode == 0o100644 || e.mode == 0o100755
	if l.found == nil || l.found.full() || !regular || there && l.stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	l.found.changed = append(l.found.changed, e.name)
	return true
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

// statEntry returns what an index says about a regular file, parsed and as bytes.
func statEntry(name string, info fs.FileInfo) (indexed, []byte, bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return indexed{}, nil, false
	}
	mode := uint32(0o100644)
	if stat.Mode&0o100 != 0 {
		mode = 0o100755
	}
	var raw []byte
	for _, n := range []uint32{
		uint32(stat.Ctim.Sec), uint32(stat.Ctim.Nsec), uint32(stat.Mtim.Sec), uint32(stat.Mtim.Nsec),
		uint32(stat.Dev), uint32(stat.Ino), mode, stat.Uid, stat.Gid, uint32(stat.Size),
	} {
		raw = binary.BigEndian.AppendUint32(raw, n)
	}
	e := indexed{
		name: name, mode: mode, size: uint32(stat.Size),
		changed: uint32(stat.Ctim.Sec), nanos: uint32(stat.Ctim.Nsec), modified: uint32(stat.Mtim.Sec), modifiedNanos: uint32(stat.Mtim.Nsec),
	}
	return e, raw, e.nanos != 0
}
