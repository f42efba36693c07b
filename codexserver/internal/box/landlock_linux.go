package box

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// handled are the rights that Landlock takes away, by the version of its ABI that introduced them.
var handled = [...]uint64{
	1: unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM,
	2: unix.LANDLOCK_ACCESS_FS_REFER,
	3: unix.LANDLOCK_ACCESS_FS_TRUNCATE,
	5: unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
	9: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX,
}

const (
	// The rights that a rule for a file may grant.
	fileRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	// closedRights are taken away besides where a profile closes what it does not name.
	closedRights = unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_EXECUTE

	// No command may make devices, not even in a writable folder: through one it could reach everything.
	deviceNodes = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK

	abiTruncate = 3 // the first that stops truncation; before it seccomp must
	abiNet      = 4 // the first that knows TCP
)

// devices are writable under every policy.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// landlockABI returns the kernel's version of Landlock, or 0 if it has none.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// handledBy returns the rights that a version takes away.
func handledBy(abi int) (all uint64) {
	for since, rights := range handled {
		if abi >= since {
			all |= rights
		}
	}
	return all
}

// newRuleset makes a Landlock ruleset that leaves roots writable, and everything but devices readable, or only what a
// profile names if that is not nil, and denies the rights net of the network.
func newRuleset(abi int, net uint64, roots []*folder, readable []string) (*os.File, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_net: net, Handled_access_fs: handledBy(abi)}
	if readable != nil {
		attr.Handled_access_fs |= closedRights
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	// The kernel accepts members that it does not know, if they are zero.
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr),
		0)
	if errno != 0 {
		return nil, fmt.Errorf("landlock ruleset: %w", errno)
	}
	ruleset := os.NewFile(r, "landlock ruleset") // closed when it is no longer needed
	// Rules can only add rights, so for reading each neighbour of /dev needs one.
	var err error
	if readable == nil {
		err = allowReading(ruleset)
	}
	for _, path := range readable {
		rights := uint64(unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE)
		if isFolder(path) {
			rights |= unix.LANDLOCK_ACCESS_FS_READ_DIR
		}
		err = errors.Join(err, allowPath(ruleset, path, rights))
	}
	for _, device := range devices {
		err = errors.Join(err, allowPath(ruleset, device, attr.Handled_access_fs&fileRights))
	}
	for _, root := range roots {
		err = errors.Join(err, allow(ruleset, int(root.file.Fd()), root.path, attr.Handled_access_fs&^deviceNodes))
		runtime.KeepAlive(root)
	}
	return ruleset, err
}

// allowReading leaves everything but devices readable.
func allowReading(ruleset *os.File) error {
	entries, err := os.ReadDir("/")
	for _, entry := range entries {
		// The target of a symbolic link has a rule of its own.
		if name := entry.Name(); name != "dev" && entry.Type()&os.ModeSymlink == 0 {
			err = errors.Join(err, allowPath(ruleset, "/"+name, unix.LANDLOCK_ACCESS_FS_READ_FILE))
		}
	}
	return errors.Join(err, allowPath(ruleset, "/dev/shm", unix.LANDLOCK_ACCESS_FS_READ_FILE))
}

// allowPath grants rights to the file or folder at path. A missing one is ignored.
func allowPath(ruleset *os.File, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("landlock: open %s: %w", path, err)
	}
	defer unix.Close(fd)
	return allow(ruleset, fd, path, rights)
}

// allow grants rights to the file behind fd or, if it is a folder, to everything below it.
func allow(ruleset *os.File, fd int, path string, rights uint64) error {
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("landlock: allow %s: %w", path, errno)
	}
	return nil
}

// restrictSelf applies the ruleset to the calling thread. This cannot be undone.
func restrictSelf(ruleset *os.File) error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset.Fd(), 0, 0); errno != 0 {
		return fmt.Errorf("landlock: restrict the thread: %w", errno)
	}
	return nil
}
