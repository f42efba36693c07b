package shared

import (
	"os"
	"testing"
)

// TestProcesses reads what the kernel tells about processes.
func TestProcesses(t *testing.T) {
	parent, own, err := look(os.Getpid())
	if parent != os.Getppid() || err != nil {
		t.Errorf("the parent is %d, %v, want %d", parent, err, os.Getppid())
	}
	if _, again, err := look(os.Getpid()); err != nil || own != again {
		t.Errorf("identities %q and %q, %v", own, again, err)
	}
	if _, other, err := look(1); err != nil || other == own {
		t.Errorf("identities %q and %q, %v", own, other, err)
	}
	for _, pid := range []int{-1, 1 << 30} {
		if p, text, err := look(pid); err == nil || text != "" || p != 0 {
			t.Errorf("process %d: %q, parent %d", pid, text, p)
		}
	}
}
