package keeper

import "golang.org/x/sys/unix"

// withRoom runs start with a lower limit of processes, which what it starts
// inherits: a command that uses up its own leaves room for the server and the
// keepers, since the kernel counts all processes of the user. Root has no limit.
//
// Only the soft limit can be given back afterwards. That commands do not raise
// it is up to the confinement.
func withRoom(start func() error) error {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil || own.Cur == unix.RLIM_INFINITY {
		return start()
	}
	lower := unix.Rlimit{Cur: own.Cur - reserve(own.Cur), Max: own.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &lower); err != nil {
		return err
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NPROC, &own) }() // up to the hard limit, which everybody may
	return start()
}

// reserve is how many processes and threads below limit are not for commands.
func reserve(limit uint64) uint64 { return min(limit/2, max(32, min(limit/8, 256))) }
