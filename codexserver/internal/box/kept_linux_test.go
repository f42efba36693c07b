package box_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"golang.org/x/sys/unix"
)

// TestLimitOfProcesses checks that a command has a lower limit of processes than its launcher, and cannot raise it.
func TestLimitOfProcesses(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		t.Fatal(err)
	}
	c := confine(t, protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true}, t.TempDir())
	res := ran(t, run.Spec{Argv: []string{"bash", "-c", `ulimit -Su $(ulimit -Hu) 2> /dev/null; ulimit -Su`}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c})
	got := strings.TrimSpace(res.Aggregated)
	if limit, err := strconv.ParseUint(got, 10, 64); own.Cur == unix.RLIM_INFINITY && got != "unlimited" || own.Cur != unix.RLIM_INFINITY && (err != nil || limit >= own.Cur || limit < own.Cur/2) {
		t.Errorf("limit %s, here it is %d", got, own.Cur)
	}
}
