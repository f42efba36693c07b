//go:build amd64 || arm64

package enclosure

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"golang.org/x/sys/unix"
)

// place is a mount that an enclosure puts on a path.
type place struct {
	path  string
	mount int  // its descriptor
	hides bool // it covers what is to be hidden
}

// mount makes everything read-only but the writable folders, hides what is to be hidden,
// and puts the enclosure's own /tmp, /var/tmp, /dev/shm and /proc in place.
//
// Mounts are made from descriptors and attached to descriptors, and
// symbolic links are not followed: other processes may change names meanwhile.
func (s *spec) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	places, err := s.places()
	for _, p := range places {
		defer unix.Close(p.mount)
	}
	if err != nil {
		return err
	}
	if err := ownDevices(); err != nil {
		return err
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make / read-only: %w", err)
	}
	// Put a place that lies in another one after it.
	sort.SliceStable(places, func(i, j int) bool { return places[i].path+"/" < places[j].path+"/" })
	for _, p := range places {
		if err := p.put(); err != nil {
			return fmt.Errorf("mount %s: %w", p.path, err)
		}
	}
	for _, p := range places {
		if !p.hides {
			continue
		}
		if err := unix.MountSetattr(p.mount, "", unix.AT_EMPTY_PATH,
			&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make %s read-only: %w", p.path, err)
		}
	}
	return ownProcesses()
}

// places returns the mounts of the enclosure, not yet attached. Of two for one path the
// later one counts.
func (s *spec) places() (places []place, err error) {
	add := func(path string, hides bool, mount int, err error) error {
		if err != nil {
			return fmt.Errorf("prepare %s: %w", path, err)
		}
		places = append(places, place{path, mount, hides})
		return nil
	}
	for _, path := range s.Hidden {
		mount, err := cover(path)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err := add(path, true, mount, err); err != nil {
			return places, err
		}
	}
	shared, err := ownFiles("1777")
	if err := add("/dev/shm", false, shared, err); err != nil {
		return places, err
	}
	for _, path := range []string{"/tmp", "/var/tmp"} {
		mount, err := copyFolder(s.Temp)
		if err := add(path, false, mount, err); err != nil {
			return places, err
		}
	}
	for _, path := range s.Writable {
		mount, err := copyFolder(path)
		if err := add(path, false, mount, err); err != nil {
			return places, err
		}
	}
	return places, nil
}

// put attaches the mount. It creates missing parent folders, which is possible only in a
// mount that hides others.
func (p place) put() error {
	at, err := openName(unix.AT_FDCWD, "/")
	for part := range strings.SplitSeq(strings.Trim(p.path, "/"), "/") {
		if err != nil {
			break
		}
		next, missing := openName(at, part)
		if errors.Is(missing, unix.ENOENT) && !p.hides {
			if missing = unix.Mkdirat(at, part, 0o755); missing == nil {
				next, missing = openName(at, part)
			}
		}
		unix.Close(at)
		at, err = next, missing
	}
	if err == nil {
		err = putMount(p.mount, at)
		unix.Close(at)
	}
	switch {
	case errors.Is(err, unix.ENOENT) && p.hides:
		return nil // another place hides it
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EROFS):
		if slices.Contains([]string{"/dev/shm", "/var/tmp", "/tmp"}, p.path) {
			return nil // this system does not have it
		}
	}
	return err
}

// copyFolder returns a mount of a folder whose path has no symbolic link.
func copyFolder(path string) (int, error) {
	folder, err := run.OpenFolder(path)
	if err != nil {
		return -1, err
	}
	defer folder.Close()
	return copyMount(int(folder.Fd()))
}

// cover returns a mount that hides what is at path: an empty folder for a folder, the
// null device for a file.
func cover(path string) (int, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return -1, err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return ownFiles("755") // made read-only later
	}
	null, err := openName(unix.AT_FDCWD, "/dev/null")
	if err != nil {
		return -1, err
	}
	defer unix.Close(null)
	return copyMount(null)
}

// ownFiles returns a mount of an empty folder in memory.
func ownFiles(mode string) (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigSetString(fs, "mode", mode); err != nil {
		return -1, err
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
}

// ownProcesses mounts a /proc that has only the enclosure's processes. Root cannot change
// the machine through it.
func ownProcesses() error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", "/proc", "proc", flags, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"acpi", "bus", "fs", "irq", "scsi", "sys", "sysrq-trigger"} {
		path := "/proc/" + name
		fd, err := openName(unix.AT_FDCWD, path)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err == nil {
			err = readOnlyOnItself(fd)
			unix.Close(fd)
		}
		if err != nil {
			return fmt.Errorf("make %s read-only: %w", path, err)
		}
	}
	return nil
}

// readOnlyOnItself mounts the file behind fd on itself, read-only.
func readOnlyOnItself(fd int) error {
	tree, err := copyMount(fd)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return err
	}
	return putMount(tree, fd)
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

// ownDevices replaces /dev by one without disks, and with new terminals for programs that want one. /dev/tty is the
// terminal of the process that opens it.
func ownDevices() error {
	trees := map[string]int{}
	for _, path := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"} {
		fd, err := openName(unix.AT_FDCWD, path)
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
		defer unix.Close(trees[path])
	}
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64k"); err != nil {
		return fmt.Errorf("mount /dev: %w", err)
	}
	for path, tree := range trees {
		err := os.WriteFile(path, nil, 0o600)
		if err == nil {
			err = unix.MoveMount(tree, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
		}
		if err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	for _, folder := range []string{"/dev/shm", "/dev/pts"} { // the first one is mounted later
		if err := os.Mkdir(folder, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC,
		"newinstance,mode=600,ptmxmode=666"); err != nil {
		return fmt.Errorf("mount /dev/pts: %w", err)
	}
	for name, to := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd",
		"stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(to, "/dev/"+name); err != nil {
			return err
		}
	}
	return nil
}

// openName opens a name in a folder with O_PATH. It opens a symbolic link itself.
func openName(dir int, name string) (int, error) {
	return unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}
