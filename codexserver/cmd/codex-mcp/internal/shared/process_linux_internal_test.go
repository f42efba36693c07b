package shared

import (
	"os"
	"testing"
)

// TestProcesses reads what the kernel tells about processes.
func TestProcesses(t *testing.T) {
	if got, err := parent(os.Getpid()); got != os.Getppid() || err != nil {
		t.Errorf("the parent is %d, %v, want %d", got, err, os.Getppid())
	}
	own, err := identity(os.Getpid())
	if again, failed := identity(os.Getpid()); err != nil || failed != nil || own != again {
		t.Errorf("identities %q and %q, %v, %v", own, again, err, failed)
	}
	if other, err := identity(1); err != nil || other == own {
		t.Errorf("identities %q and %q, %v", own, other, err)
	}
	for _, pid := range []int{-1, 1 << 30} {
		if text, err := identity(pid); err == nil || text != "" {
			t.Errorf("process %d: %q", pid, text)
		}
		if p, err := parent(pid); err == nil || p != 0 {
			t.Errorf("process %d has the parent %d", pid, p)
		}
	}
}
