//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// rootSpec describes a writable folder to another process. Device and inode identify the
// folder itself as long as a process has it open.
type rootSpec struct {
	Path   string `json:"path"`
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

func (r Roots) specs() []rootSpec {
	specs := make([]rootSpec, len(r.folders))
	for i, folder := range r.folders {
		specs[i].Path = folder.path
		if stat, ok := folder.info.Sys().(*syscall.Stat_t); ok {
			specs[i].Device, specs[i].Inode = stat.Dev, stat.Ino
		}
	}
	return specs
}

// open returns the folder, unless something else has its path.
func (r rootSpec) open() (*folder, error) {
	found, err := openFolder(r.Path)
	if err != nil {
		return nil, err
	}
	stat, ok := found.info.Sys().(*syscall.Stat_t)
	if !ok || stat.Dev != r.Device || stat.Ino != r.Inode {
		return nil, fmt.Errorf("%s was replaced", r.Path)
	}
	return found, nil
}

// limitMounts makes every mount but the roots read-only, and the protected paths in the
// roots. It returns the roots.
//
// Mounts are made from descriptors and attached to descriptors. A name that a command of
// another conversation changes meanwhile is an error and never followed.
func limitMounts(specs []rootSpec, protect []string) ([]*folder, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make mounts private: %w", err)
	}
	roots := make([]*folder, len(specs))
	for i, spec := range specs {
		if roots[i], err = spec.open(); err != nil {
			return nil, err
		}
	}
	if err := limitWriting(specs, roots); err != nil {
		return nil, err
	}
	for _, path := range protect {
		if err := pinAgain(path); err != nil {
			return nil, fmt.Errorf("make %s read-only: %w", path, err)
		}
	}
	// Until now the working folder is the one below the new mounts.
	return roots, os.Chdir(cwd)
}

// limitWriting makes every mount but the roots read-only.
func limitWriting(specs []rootSpec, roots []*folder) error {
	trees := make([]int, len(roots))
	for i, root := range roots {
		var err error
		if trees[i], err = copyMount(int(root.file.Fd())); err != nil {
			return fmt.Errorf("copy %s: %w", root.path, err)
		}
		defer unix.Close(trees[i])
	}
	if err := ownDevices(); err != nil {
		return err
	}
	if slices.ContainsFunc(specs, func(s rootSpec) bool { return s.Path == "/" }) {
		return nil
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make / read-only: %w", err)
	}
	// Mount a root that lies in another one after it.
	order := make([]int, len(specs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(specs[a].Path, specs[b].Path) })
	for _, i := range order {
		below, err := specs[i].open()
		if err == nil {
			err = putMount(trees[i], int(below.file.Fd()))
		}
		if err != nil {
			return fmt.Errorf("mount %s: %w", specs[i].Path, err)
		}
	}
	return nil
}

// copyMount returns a mount, not yet attached, of the file or folder behind fd and
// everything below it.
func copyMount(fd int) (int, error) {
	const flags = unix.AT_EMPTY_PATH | unix.AT_RECURSIVE | unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC
	return unix.OpenTree(fd, "", flags)
}

// putMount attaches a mount to the file or folder behind fd.
func putMount(tree, fd int) error {
	return unix.MoveMount(tree, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// ownDevices replaces /dev by one without terminals and disks.
func ownDevices() error {
	trees := map[string]int{}
	for _, path := range append(slices.Clone(devices), "/dev/shm") {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err == nil {
			trees[path], err = copyMount(fd)
			unix.Close(fd)
		}
		if err != nil {
			return fmt.Errorf("copy %s: %w", path, err)
		}
	}
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	for path, tree := range trees {
		var err error
		if path == "/dev/shm" {
			err = os.Mkdir(path, 0o755)
		} else {
			err = os.WriteFile(path, nil, 0o600)
		}
		if err == nil {
			err = unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
			unix.Close(tree)
		}
		if err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	for i, name := range []string{"stdin", "stdout", "stderr", "fd"} {
		to := "/proc/self/fd"
		if i < 3 {
			to = fmt.Sprintf("%s/%d", to, i)
		}
		if err := os.Symlink(to, "/dev/"+name); err != nil {
			return err
		}
	}
	return nil
}

// pinTries is how often a path is pinned that is replaced meanwhile.
const pinTries = 100

// pinAgain is [pin], and begins again if a program removes or replaces what lies on the path
// meanwhile. Whoever can do that can write there anyway.
func pinAgain(path string) (err error) {
	for range pinTries {
		err = pin(path)
		// EINVAL is the error for a mount on a folder that was removed.
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, errReplaced) {
			break
		}
	}
	return err
}

// pin makes the target of path read-only, and keeps path leading there. A mount cannot be
// renamed or removed, so each folder and each symbolic link on the way is mounted on
// itself if it lies in a writable mount. A path that leads nowhere stays as it is.
func pin(path string) error {
	var at []int // the folders down from the root
	defer func() {
		for _, fd := range at {
			unix.Close(fd)
		}
	}()
	root, rest := split(filepath.Clean(path))
	fd, err := openName(unix.AT_FDCWD, root)
	if err != nil {
		return err
	}
	at = append(at, fd)
	rest = slices.DeleteFunc(rest, func(part string) bool { return part == "" })
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if last := len(at) - 1; last > 0 {
				unix.Close(at[last])
				at = at[:last]
			}
			continue
		}
		fd, link, err := pinName(at[len(at)-1], part, len(rest) == 0)
		if errors.Is(err, errNowhere) {
			return nil // the command cannot follow it either
		}
		if err != nil {
			return err
		}
		if link == "" {
			at = append(at, fd)
			continue
		}
		unix.Close(fd)
		if links++; links > maxLinks {
			return unix.ELOOP
		}
		to := strings.Split(link, "/")
		if filepath.IsAbs(link) {
			for _, fd := range at[1:] {
				unix.Close(fd)
			}
			at = at[:1]
		}
		rest = append(to, rest...)
	}
	return nil
}

var (
	// errNowhere is the error for a name that is missing or may not be opened.
	errNowhere = errors.New("the path leads nowhere")
	// errReplaced is the error for a name that has another file than before.
	errReplaced = errors.New("it was replaced meanwhile")
)

// pinName opens a name in a folder and mounts it on itself, unless it is read-only
// already. The last name of a path becomes read-only. For a symbolic link pinName returns
// the target.
func pinName(dir int, name string, last bool) (fd int, link string, err error) {
	fd, err = openName(dir, name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return -1, "", errNowhere
	}
	if err != nil {
		return -1, "", err
	}
	return pinOpened(dir, name, fd, last)
}

// pinOpened continues pinName with the file behind fd. Its error is never errNowhere: a
// name that is missing now was there before, and may have another file soon, so [pinAgain]
// looks again.
func pinOpened(dir int, name string, fd int, last bool) (_ int, link string, err error) {
	var stat unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE, &stat); err != nil {
		return fd, "", err
	}
	isLink := stat.Mode&unix.S_IFMT == unix.S_IFLNK
	if last = last && !isLink; last || stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		if err = mountOnItself(dir, name, &fd, last); err != nil {
			return fd, "", err
		}
	}
	if isLink {
		text := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(fd, "", text)
		if err != nil {
			return fd, "", err
		}
		link = string(text[:n])
	}
	return fd, link, nil
}

// mountOnItself mounts the file behind fd on itself, and replaces fd by one for the new
// mount, which it opens by name. It does nothing if fd is on a read-only mount.
func mountOnItself(dir int, name string, fd *int, readOnly bool) error {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(*fd, &stat); err != nil {
		return err
	}
	if stat.Flags&unix.ST_RDONLY != 0 {
		return nil
	}
	tree, err := copyMount(*fd)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if readOnly {
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		if err != nil {
			return err
		}
	}
	if err := putMount(tree, *fd); err != nil {
		return err
	}
	unix.Close(*fd)
	if *fd, err = openName(dir, name); err != nil {
		return err
	}
	var now unix.Statx_t
	if err := unix.Statx(*fd, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE, &now); err != nil {
		return err
	}
	if now.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return errReplaced
	}
	return nil
}

// openName opens a name in a folder with O_PATH. It opens a symbolic link itself.
func openName(dir int, name string) (int, error) {
	return unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}
