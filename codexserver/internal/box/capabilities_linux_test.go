package box_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"golang.org/x/sys/unix"
)

// TestCapabilities starts a command as root with network access. It keeps its rights over
// files, and loses those over the machine, its network and its log.
func TestCapabilities(t *testing.T) {
	files := uint64(1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER |
		1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_NET_BIND_SERVICE |
		1<<unix.CAP_NET_BROADCAST | 1<<unix.CAP_IPC_LOCK | 1<<unix.CAP_IPC_OWNER | 1<<unix.CAP_SYS_CHROOT |
		1<<unix.CAP_MKNOD | 1<<unix.CAP_LEASE | 1<<unix.CAP_AUDIT_WRITE | 1<<unix.CAP_WAKE_ALARM | 1<<unix.CAP_BLOCK_SUSPEND |
		1<<unix.CAP_AUDIT_READ)
	policy := write("/nowhere")
	policy.NetworkAccess = true
	c := confine(t, policy, "/")
	res := ran(t, run.Spec{Argv: []string{"/bin/cat", "/proc/self/status"}, Dir: "/", Confinement: c})
	_, after, found := strings.Cut(res.Stdout, "CapPrm:")
	has, err := strconv.ParseUint(strings.Fields(after + " none")[0], 16, 64)
	if !found || err != nil {
		t.Fatalf("%v: %+v", err, res)
	}
	if has&^files != 0 {
		t.Errorf("the command has the capabilities %x", has&^files)
	}
}
