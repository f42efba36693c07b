//go:build soak && linux

package box_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestHostsCost compares the processor time of a command that may ask for hosts, and does not, with that of one that may not.
func TestHostsCost(t *testing.T) {
	used := func() (sum time.Duration) {
		for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
			var u syscall.Rusage
			must.OK(t, syscall.Getrusage(who, &u))
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		return sum
	}
	least := map[protocol.SandboxMode]time.Duration{protocol.SandboxWorkspaceWrite: time.Hour, withHosts: time.Hour}
	for range 20 {
		for mode := range least {
			var processes run.Starter
			before := used()
			try(t, &processes, mode, nil, []attempt{{fixture(t), []string{"run", "sh", "-c", strings.Repeat("/bin/true;", 300)}}})
			must.OK(t, processes.Close())
			least[mode] = min(least[mode], used()-before)
		}
	}
	if ratio := least[withHosts].Seconds() / least[protocol.SandboxWorkspaceWrite].Seconds(); ratio > 1.05 {
		t.Errorf("%.3f of the time: %v", ratio, least)
	}
}
