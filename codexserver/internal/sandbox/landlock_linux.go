package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights that Landlock takes away, by the version of its ABI that brought
// them. Reading and executing are not restricted.
const (
	rightsABI1 = unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	rightsABI2 = unix.LANDLOCK_ACCESS_FS_REFER
	rightsABI3 = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rightsABI5 = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	rightsABI9 = unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX

	// Those that a rule for a file may grant.
	fileRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | rightsABI3 | rightsABI5

	// What nobody needs below a writable folder: a device made there would lead
	// around all rules.
	deviceNodes = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK

	abiTruncate = 3 // below, seccomp has to stop truncation
)

// devices may be written to under every policy.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// landlockABI is the kernel's version of Landlock, 0 without.
func landlockABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

func handledRights(abi int) uint64 {
	rights := uint64(rightsABI1)
	for _, step := range []struct {
		abi    int
		rights uint64
	}{{2, rightsABI2}, {3, rightsABI3}, {5, rightsABI5}, {9, rightsABI9}} {
		if abi >= step.abi {
			rights |= step.rights
		}
	}
	return rights
}

// newRuleset makes a Landlock ruleset that leaves roots writable.
func newRuleset(abi int, roots []string) (fd int, err error) {
	handled := handledRights(abi)
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if abi >= 4 {
		size = unsafe.Offsetof(attr.Scoped)
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size = unsafe.Offsetof(attr.Quiet_access_fs)
	}
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return -1, fmt.Errorf("landlock ruleset: %w", errno)
	}
	fd = int(r)
	for _, root := range roots {
		err = errors.Join(err, allowBeneath(fd, root, handled&^deviceNodes, true))
	}
	for _, device := range devices {
		if e := allowBeneath(fd, device, handled&fileRights, false); !errors.Is(e, unix.ENOENT) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// allowBeneath grants rights to path and, when it is a folder, what is below
// it. With exact, the path must lead to itself: it was resolved before.
func allowBeneath(ruleset int, path string, rights uint64, exact bool) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("landlock: open %s: %w", path, err)
	}
	defer unix.Close(fd)
	if exact {
		real, err := os.Readlink(fmt.Sprintf("/proc/thread-self/fd/%d", fd))
		if err != nil {
			return fmt.Errorf("landlock: %s: %w", path, err)
		}
		if real != path {
			return fmt.Errorf("landlock: %s was replaced by %s", path, real)
		}
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("landlock: %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("landlock: allow %s: %w", path, errno)
	}
	return nil
}

// restrictSelf puts the ruleset on the calling thread, for good.
func restrictSelf(ruleset int) error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("landlock: restrict the thread: %w", errno)
	}
	return nil
}
