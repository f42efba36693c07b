//go:build amd64 || arm64

package box

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/internal/paths"
	"golang.org/x/sys/unix"
)

// profiled is what a profile adds to the mounts of one command.
type profiled struct {
	roots  []string
	set    *permission.Set
	fixed  []fixed
	absent []string // names that must not come to be there
}

// mounted returns what has a mount of its own for a command, outer ones first, and the names that must not come to be there.
func (r *Roots) mounted(set *permission.Set) (all []fixed, absent []string, err error) {
	p, err := r.profiled(set)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range append(p.fixed, r.fixed()...) {
		i := slices.IndexFunc(all, func(other fixed) bool { return other.path == f.path })
		switch {
		case p.hides(f):
		case i < 0:
			all = append(all, f)
		case f.kind == denied || f.kind == readOnly && all[i].kind == kept: // the stricter one counts
			all[i] = f
		}
	}
	if len(all) > 0 {
		mountinfo, _ := os.ReadFile("/proc/self/mountinfo")
		mounts := readMounts(string(mountinfo))
		for _, f := range slices.Clone(all) {
			if f.kind == open {
				continue
			}
			for _, path := range mounts.others(f.path) {
				if other := (fixed{path, f.kind}); !slices.Contains(all, other) {
					all = append(all, other)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b fixed) int { return strings.Compare(a.path, b.path) })
	return all, p.absent, nil
}

// hides reports whether something lies in a denied folder, where it cannot be found, and in nothing that is open there.
func (p *profiled) hides(f fixed) bool {
	hidden := false
	for _, over := range p.fixed {
		if over.path != f.path && paths.Below(f.path, over.path) && (over.kind == denied || over.kind == open) {
			hidden = over.kind == denied
		}
	}
	return hidden && f.kind != open
}

// profiled looks for what the profile keeps from a command in the roots, now.
func (r *Roots) profiled(set *permission.Set) (*profiled, error) {
	p := &profiled{roots: r.Paths, set: set}
	if set == nil {
		return p, nil
	}
	for _, e := range set.Entries {
		kind := p.kind(e)
		ofSystem := paths.Below(e.Path, "/proc") || paths.Below(e.Path, "/dev") && !paths.Below(e.Path, shmFolder)
		if kind == "" || ofSystem { // as in Codex, of which a command has its own
			continue
		}
		if err := p.add(e, kind); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Key, err)
		}
	}
	found, err := set.Find()
	if err != nil {
		return nil, err
	}
	for _, m := range found {
		root := p.rootOf(m.Path)
		for _, folder := range m.Fixed {
			if root != "" && paths.Below(folder, root) && (folder != root || m.Loose) {
				p.keep(folder)
			}
		}
		if m.Loose && root != "" && paths.Below(root, m.Fixed[0]) { // moved out of it, the glob would not find it
			p.keep(root)
		}
		p.fixed = append(p.fixed, fixed{m.Path, denied})
	}
	slices.SortStableFunc(p.fixed, func(a, b fixed) int { return strings.Compare(a.path, b.path) })
	return p, nil
}

// kind returns what has to be mounted at an entry, "" for nothing.
func (p *profiled) kind(e permission.Entry) string {
	outside := p.set.Outside(e)
	switch {
	case e.Path == "/":
	case e.Access == permission.Deny && outside != permission.Deny:
		return denied
	case e.Access == permission.Read && outside == permission.Write:
		return readOnly
	case e.Access == permission.Write && p.covered(e.Path):
		return open
	}
	return ""
}

// covered reports whether the mount of another entry lies over a path.
func (p *profiled) covered(path string) bool {
	return slices.ContainsFunc(p.fixed,
		func(f fixed) bool { return f.kind != kept && f.path != path && paths.Below(path, f.path) })
}

func (p *profiled) add(e permission.Entry, kind string) error {
	if kind != open {
		if err := p.direct(e.Named); err != nil {
			return err
		}
	}
	missing := e.Path
	for { // up to the first name that is missing
		up := filepath.Dir(missing)
		if _, err := os.Lstat(up); err == nil {
			break
		}
		missing = up
	}
	switch _, err := os.Lstat(missing); {
	case errors.Is(err, fs.ErrNotExist):
		if kind != open {
			p.absent = append(p.absent, missing)
		}
		return nil
	case errors.Is(err, fs.ErrPermission) && kind != open: // the folder is closed, which a command could change
		p.fixed = append(p.fixed, fixed{filepath.Dir(missing), kind})
		return nil
	case err != nil:
		return err
	}
	if root := p.rootOf(e.Path); root != "" && kind != open {
		for up := filepath.Dir(e.Path); up != root && paths.Below(up, root); up = filepath.Dir(up) {
			p.keep(up)
		}
	}
	p.fixed = append(p.fixed, fixed{e.Path, kind})
	return nil
}

// direct fails if the way to a path leads through a symbolic link that a command can change: it could lead elsewhere then.
func (p *profiled) direct(path string) error {
	_, _, err := paths.Follow(path, func(link string, info fs.FileInfo) error {
		if info.Mode()&fs.ModeSymlink != 0 && p.set.Of(paths.Real(filepath.Dir(link))) == permission.Write &&
			p.rootOf(link) != "" {
			return fmt.Errorf("%s is a symbolic link in a writable folder, so it cannot be kept; name what it leads to",
				link)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// rootOf returns the outermost writable folder in which a path lies, "" if it lies in none.
func (p *profiled) rootOf(path string) (outer string) {
	for _, root := range p.roots {
		if paths.Below(path, root) && (outer == "" || len(root) < len(outer)) {
			outer = root
		}
	}
	return outer
}

// keep has a folder stay where it is, unless an entry mounts something there.
func (p *profiled) keep(folder string) {
	if folder != "/" && !slices.ContainsFunc(p.fixed, func(f fixed) bool { return f.path == folder }) {
		p.fixed = append(p.fixed, fixed{folder, kept})
	}
}

// readable returns what commands may read where the profile closes the rest, nil where it does not.
func readable(set *permission.Set) (all []string) {
	if !set.Closed() {
		return nil
	}
	for _, e := range set.Entries {
		if set.Of(e.Path) != permission.Deny {
			all = append(all, e.Path)
		}
	}
	return append(all, "/proc/self") // never empty
}

// lookUp looks up what is open below denied folders, before these are covered, and returns its descriptors.
func (f *furnisher) lookUp() map[string]int {
	descriptors := map[string]int{}
	for _, m := range f.fixed {
		if m.kind == open {
			descriptors[m.path] = openFD + len(descriptors)
			f.clone("open "+m.path, m.path, descriptors[m.path])
		}
	}
	return descriptors
}

// clone makes a mount of what is at a path, and keeps it as a descriptor. The path itself stays open as pathFD.
func (f *furnisher) clone(name, path string, fd int) {
	f.look(name, path)
	f.copyOf(name, pathFD)
	f.keep(name, fd)
}

// mask makes treeFD a mount that nobody can read: over a folder an empty one, but for the way to what is open in it; over
// anything else a device on a mount without devices, which root cannot open either.
func (f *furnisher) mask(name, path string) {
	if !isFolder(path) {
		f.clone(name, "/dev/null", treeFD)
		f.attributes(name, unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_RDONLY)
		f.look(name, path)
		return
	}
	way, mode := f.way(path), "000"
	if len(way) > 0 {
		mode = "111"
	}
	set := func(command int, key, value any) {
		f.add(name, unix.SYS_FSCONFIG, fsFD, command, key, value, 0)
	}
	f.add(name, unix.SYS_FSOPEN, "tmpfs", unix.FSOPEN_CLOEXEC)
	f.keep(name, fsFD)
	set(unix.FSCONFIG_SET_STRING, "mode", mode)
	set(unix.FSCONFIG_CMD_CREATE, 0, 0)
	f.add(name, unix.SYS_FSMOUNT, fsFD, unix.FSMOUNT_CLOEXEC,
		unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	f.keep(name, treeFD)
	for _, folder := range way {
		f.add(name, unix.SYS_MKDIRAT, treeFD, folder, 0o111)
	}
	f.attributes(name, unix.MOUNT_ATTR_RDONLY)
	f.look(name, path)
}

// attributes sets attributes of the mount at treeFD, and of those in it.
func (f *furnisher) attributes(name string, set uint64) {
	attr := &unix.MountAttr{Attr_set: set}
	f.add(name, unix.SYS_MOUNT_SETATTR, treeFD, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, unsafe.Pointer(attr),
		int(unsafe.Sizeof(*attr)))
}

// way returns the folders that a denied one must have for what is open in it, outer ones first.
func (f *furnisher) way(folder string) (names []string) {
	for _, m := range f.fixed {
		rel, within := paths.Within(m.path, folder)
		if m.kind != open || !within {
			continue
		}
		parts := strings.Split(rel, "/")
		for i := range parts {
			if name := strings.Join(parts[:i+1], "/"); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// watch says which of some names has come to be, also if it is gone again.
type watch struct {
	fd    int              // of inotify
	names map[int][]string // by the watch of their folder

	mu    sync.Mutex
	first string // that has come to be, or was there when the watch began
}

// watchFor begins a watch, which ends with this process.
func watchFor(absent []string) (w *watch, err error) {
	w = &watch{fd: -1, names: map[int][]string{}}
	if len(absent) == 0 {
		return w, nil
	}
	if w.fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		return w, err
	}
	for _, name := range absent {
		id, err := unix.InotifyAddWatch(w.fd, filepath.Dir(name), unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR)
		if err != nil {
			return w, fmt.Errorf("%s: %w", filepath.Dir(name), err)
		}
		w.names[id] = append(w.names[id], name)
		if _, err := os.Lstat(name); err == nil {
			w.first = name
		}
	}
	return w, nil
}

// next returns a sentence about a name that has come to be, or "". It does not wait.
func (w *watch) next() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == "" {
		w.first = w.name()
	}
	if name := w.first; name != "" {
		return name + " has come to be, which the profile of permissions keeps from commands"
	}
	return ""
}

func (w *watch) name() string {
	if w.fd < 0 {
		return ""
	}
	var b [4096]byte
	for {
		n, err := unix.Read(w.fd, b[:])
		if err != nil || n <= 0 {
			return ""
		}
		for events := b[:n]; len(events) >= unix.SizeofInotifyEvent; {
			id, mask := int(int32(binary.NativeEndian.Uint32(events))), binary.NativeEndian.Uint32(events[4:])
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
			base := strings.TrimRight(string(events[unix.SizeofInotifyEvent:size]), "\x00")
			for _, name := range w.names[id] {
				if filepath.Base(name) == base {
					return name
				}
			}
			if mask&unix.IN_Q_OVERFLOW != 0 {
				return "something in " + filepath.Dir(slices.Concat(slices.Collect(maps.Values(w.names))...)[0])
			}
			events = events[size:]
		}
	}
}
