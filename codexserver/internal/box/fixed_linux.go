//go:build amd64 || arm64

package box

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/paths"
	"golang.org/x/sys/unix"
)

// fixed is a file or folder that a command with rooms must leave where it is. It is a mount of its own, which cannot be renamed
// or removed. A rename takes the mounts in a folder along, so each folder between what is kept and the writable folder is
// one, too.
type fixed struct {
	path string
	kind string
}

// The kinds of what is fixed.
const (
	kept     = "kept"      // as it is
	readOnly = "read-only" // cannot be changed
	denied   = "denied"    // cannot be read either
	open     = "open"      // as it is, in something that is denied or read-only
)

// gitRuns are, in a git folder, what git runs or obeys: patterns of what exists.
var gitRuns = []string{
	"hooks", "config", "config.worktree", "modules/*/hooks", "modules/*/config", "worktrees/*/commondir",
	"worktrees/*/gitdir", "worktrees/*/config.worktree",
}

// maxFixed is how many there are at most. With more, as in a repository with hundreds of submodules, the rest is not fixed.
const maxFixed = 1000

// fixed returns what a command must not change in the roots: what git runs from the .git of each. Folders
// for temporary files are left out; but one in which another root lies cannot move that away.
func (r *Roots) fixed() (all []fixed) {
	add := func(path, kind string) {
		if f := (fixed{path, kind}); len(all) < maxFixed && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	for _, root := range r.Paths {
		dot := filepath.Join(root, ".git")
		info, err := os.Lstat(dot)
		if err != nil || !info.IsDir() || slices.Contains(temporary(), root) {
			continue
		}
		for _, outer := range r.Paths {
			if rel, within := paths.Within(root, outer); within && rel != "." {
				for path := outer; path != root; {
					name, rest, _ := strings.Cut(rel, "/")
					path, rel = filepath.Join(path, name), rest
					add(path, kept)
				}
			}
		}
		add(dot, kept)
		for _, pattern := range gitRuns {
			found, _ := filepath.Glob(filepath.Join(escaped(dot), pattern))
			for _, path := range found {
				if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink != 0 {
					continue // which the folder has to stand for
				}
				for up := filepath.Dir(path); up != dot; up = filepath.Dir(up) {
					add(up, kept)
				}
				add(path, readOnly)
			}
		}
	}
	return all
}

// temporary returns the folders for temporary files.
func temporary() []string { return []string{paths.Real("/tmp"), paths.Real(os.TempDir())} }

// escaped returns a pattern that matches only the path.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// fix mounts each on itself. What is opened is what is mounted and where, whatever becomes of its name meanwhile.
func (f *furnisher) fix() {
	opened, masked := f.lookUp(), false
	for _, m := range f.fixed {
		name, file := m.kind+" "+m.path, m.kind == denied && !isFolder(m.path)
		var tree any = treeFD
		switch {
		case file && masked: // a copy of the first one
			f.look(name, m.path)
			f.copyOf(name, maskFD)
			tree = run.Before
		case m.kind == denied:
			f.mask(name, m.path)
		case m.kind == open:
			f.look(name, m.path)
			tree = opened[m.path]
		case m.kind == kept:
			f.look(name, m.path)
			f.copyOf(name, pathFD)
			tree = run.Before
		default:
			f.clone(name, m.path, treeFD)
			f.attributes(name, unix.MOUNT_ATTR_RDONLY)
		}
		f.add(name, unix.SYS_MOVE_MOUNT, tree, "", pathFD, "",
			unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
		if file && !masked {
			f.add(name, unix.SYS_DUP3, treeFD, maskFD, unix.O_CLOEXEC)
			masked = true
		}
	}
}

// look opens a path as pathFD.
func (f *furnisher) look(name, path string) {
	f.add(name, unix.SYS_OPENAT, atCwd, path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	f.keep(name, pathFD)
}

// copyOf makes a mount of what is behind a descriptor. The next step has it.
func (f *furnisher) copyOf(name string, fd int) {
	f.add(name, unix.SYS_OPEN_TREE, fd, "",
		unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
}

// watch returns what is no mount any more, in the rooms of a process, or that its layers are too large. The kernel takes a mount
// away when somebody outside removes what it is on, or renames something over it, as git does with its configuration. It
// returns "" for a process that has ended.
func (p plan) watch(pid int, news *watch) string {
	const again = 500 // milliseconds
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mountinfo")
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT): // it has ended before, and nothing is left to watch
		return ""
	case err != nil:
		return fmt.Sprintf("what protects its git folder cannot be watched: %v", err)
	}
	defer f.Close()
	changed := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
	if len(p.absent) > 0 {
		changed = append(changed, unix.PollFd{Fd: int32(news.fd), Events: unix.POLLIN})
	}
	var looked int64
	var ids []string
	for {
		var all bytes.Buffer
		_, err := f.Seek(0, 0)
		if err == nil {
			_, err = all.ReadFrom(f)
		}
		if err != nil {
			return fmt.Sprintf("what protects its git folder cannot be watched any more: %v", err)
		}
		mounted := readMounts(all.String())
		if ids == nil {
			ids = p.idsOf(mounted)
		}
		for i, m := range p.fixed {
			if !slices.ContainsFunc(mounted, func(other mount) bool { return other.id == ids[i] }) {
				return fmt.Sprintf("%s was replaced outside of the sandbox, and with it what protects it from the "+
					"command, which was ended", m.path)
			}
		}
		if name := news.next(); name != "" {
			return name
		}
		if why := p.layered.grown(&looked); why != "" {
			return why
		}
		_, _ = unix.Poll(changed, again) // whatever wakes it, it looks again
	}
}

// idsOf returns the ids of the mounts of what is fixed, "" for one that is gone. A command may have moved the folder of one
// already, with which it goes: only its name is the same then.
func (p plan) idsOf(mounted []mount) []string {
	ids := make([]string, len(p.fixed))
	for i, m := range p.fixed {
		for _, other := range slices.Backward(mounted) { // the last is the one that is seen
			if other.point == m.path {
				ids[i] = other.id
				break
			}
		}
	}
	for i, m := range p.fixed {
		for _, other := range mounted {
			if ids[i] == "" && filepath.Base(other.point) == filepath.Base(m.path) && !slices.Contains(ids, other.id) {
				ids[i] = other.id
			}
		}
	}
	return ids
}

// mount is a line of a mountinfo, see proc_pid_mountinfo(5).
type mount struct {
	id     string
	device string
	root   string // of the mount, in the device's file system
	point  string
}

type mounts []mount

func readMounts(mountinfo string) (all mounts) {
	for line := range strings.Lines(mountinfo) {
		const device, root, point = 2, 3, 4
		if fields := strings.Fields(line); len(fields) > point {
			all = append(all, mount{fields[0], fields[device], unescaped(fields[root]), unescaped(fields[point])})
		}
	}
	return all
}

// mountPoints returns where file systems are mounted, by the text of a mountinfo.
func mountPoints(mountinfo string) (all []string) {
	for _, m := range readMounts(mountinfo) {
		all = append(all, m.point)
	}
	return all
}

// others returns the further paths of what is at an absolute path: those by which other mounts show it.
func (all mounts) others(path string) (found []string) {
	var over mount // on which path lies, the last of those at the same place
	for _, m := range all {
		if paths.Below(path, m.point) && len(m.point) >= len(over.point) {
			over = m
		}
	}
	rel, _ := paths.Within(path, over.point)
	inside := filepath.Join(over.root, rel)
	for _, m := range all {
		if m.device != over.device || m == over {
			continue
		}
		rel, shown := paths.Within(inside, m.root)
		other := filepath.Join(m.point, rel)
		if !shown || other == path || slices.Contains(found, other) {
			continue
		}
		info, err := os.Lstat(path)
		same, failed := os.Lstat(other)
		if err == nil && failed == nil && os.SameFile(info, same) { // which no other mount hides
			found = append(found, other)
		}
	}
	return found
}

// unescaped returns a path of mountinfo, which has some characters in octal.
func unescaped(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
