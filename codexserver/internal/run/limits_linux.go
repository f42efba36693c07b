package run

import "golang.org/x/sys/unix"

// withRoom runs start with a lower limit of processes, which the started process inherits.
// The kernel counts all processes of the user, so a command that reaches its limit leaves
// room for the server and its launchers. Root has no limit.
//
// It lowers only the soft limit, because the hard one cannot be restored. The confinement
// prevents commands from raising it again.
func withRoom(start func() error) error {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil || own.Cur == unix.RLIM_INFINITY {
		return start()
	}
	lower := unix.Rlimit{Cur: own.Cur - reserve(own.Cur), Max: own.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &lower); err != nil {
		return err
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NPROC, &own) }() // always allowed up to the hard limit
	return start()
}

// reserve returns how many processes and threads of limit are not for commands.
func reserve(limit uint64) uint64 { return min(limit/2, max(32, min(limit/8, 256))) }
