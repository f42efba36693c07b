package box_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// attackProbes are attempts that go around what the other probes try.
var attackProbes = map[string]func(args []string) error{
	// A descriptor that only names a file becomes one that writes it.
	"reopen to write": onLink(func(link string, _ []string) error { return closed(unix.Open(link, unix.O_WRONLY, 0)) }),
	"reopen to read": onLink(func(link string, _ []string) error {
		return closed(unix.Open(link, unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0))
	}),
	"truncate by descriptor": onLink(func(link string, _ []string) error { return unix.Truncate(link, 0) }),
	"chmod by descriptor":    onLink(func(link string, a []string) error { return unix.Chmod(link, mode(a)) }),
	"times by descriptor": onLink(func(link string, _ []string) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, link, make([]unix.Timespec, 2), 0)
	}),
	"create by descriptor": func(a []string) error {
		return byPath(filepath.Dir(a[0]), func(link string) error {
			return closed(unix.Open(filepath.Join(link, filepath.Base(a[0])), unix.O_CREAT|unix.O_WRONLY, 0o600))
		})
	},
	"signal by descriptor": func(a []string) error { return signalled(unix.PidfdOpen(pid(a), 0)) },
	"take a descriptor": func(a []string) error {
		fd, err := unix.PidfdOpen(pid(a), 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return closed(unix.PidfdGetfd(fd, 2, 0))
	},
}

// onLink is a probe with the link of [byPath].
func onLink(f func(link string, args []string) error) func(args []string) error {
	return func(a []string) error { return byPath(a[0], func(link string) error { return f(link, a) }) }
}

// byPath calls f with the link in /proc of a descriptor that only names a file.
func byPath(path string, f func(link string) error) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fmt.Sprintf("/proc/self/fd/%d", fd))
}

// numbers reads numbers in any base, also those that need all bits.
func numbers(args []string) []uint64 {
	all := make([]uint64, len(args))
	for i, a := range args {
		n, err := strconv.ParseUint(strings.TrimPrefix(a, "-"), 0, 64)
		if err != nil {
			panic(err)
		}
		if all[i] = n; a[0] == '-' {
			all[i] = -n
		}
	}
	return all
}
