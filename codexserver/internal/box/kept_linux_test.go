package box_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"golang.org/x/sys/unix"
)

// TestKept runs commands under a launcher. They are confined as without one, cannot reach
// the launcher, and cannot raise their limit of processes.
func TestKept(t *testing.T) {
	processes := boxtest.Starter(t)
	base := fixture(t)
	run := func(t *testing.T, c *box.Confinement, argv ...string) string {
		t.Helper()
		spec := run.Spec{Argv: argv, Dir: filepath.Join(base, "work"), Env: []string{"PATH=/usr/bin:/bin"}}
		if c != nil {
			spec.Confinement = c
		}
		res, err := processes.Run(t.Context(), spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(res.Aggregated)
	}
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		t.Fatal(err)
	}
	c := confine(t, protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, ExcludeSlashTmp: true}, filepath.Join(base, "work"))
	for _, tt := range []struct {
		want  string
		probe []string
	}{
		{"ok", []string{"write", "new"}},
		{"EACCES", []string{"write", "../outside/new"}},
		{"EPERM", []string{"family", "2", "1", "0"}},
		{"ok", []string{"privileges"}},
		{"ok", []string{"descriptors"}},
		{"EPERM", []string{"signal", parent}},
		{"EPERM", []string{"signal threads", parent}},
		{"EPERM", []string{"ptrace", parent}},
		{"EACCES|EPERM", []string{"read memory", parent}},
		{"EACCES|EPERM", []string{"threads' memory", parent}},
		{"EACCES|EPERM", []string{"environ", parent}},
	} {
		t.Run(tt.probe[0], func(t *testing.T) {
			got := run(t, c, append([]string{"/proc/self/exe", probeWord}, tt.probe...)...)
			if got == "" || !strings.Contains("|"+tt.want+"|", "|"+got+"|") {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
	t.Run("limit", func(t *testing.T) {
		got := run(t, c, "bash", "-c", `ulimit -Su $(ulimit -Hu) 2> /dev/null; ulimit -Su`)
		if own.Cur == unix.RLIM_INFINITY {
			if got != "unlimited" {
				t.Errorf("limit %s without one here", got)
			}
			return
		}
		if limit, err := strconv.ParseUint(got, 10, 64); err != nil || limit >= own.Cur || limit < own.Cur/2 {
			t.Errorf("limit %s, here it is %d", got, own.Cur)
		}
	})
}
