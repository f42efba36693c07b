package broker

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock opens a file that only one process can lock. The lock ends with the process.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errors.New("another codex-mcp-gateway with the same $CODEX_HOME is running")
		}
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return f, nil
}
