package box_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

var readOnly = protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}

// TestInterleaved runs confined and free commands at the same time. The confined ones
// cannot write; the others and the process itself are not affected.
func TestInterleaved(t *testing.T) {
	const workers = 8
	each := 50
	if *whole {
		each = 1000
	}
	base := fixture(t)
	work, outside := filepath.Join(base, "work"), filepath.Join(base, "outside/dir")
	confinement := confine(t, readOnly, work)
	jobs := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for n := range jobs {
				script, start, want := fmt.Sprintf("echo x > %s/free-%d", outside, n), (*exec.Cmd).Start, 0
				if n%2 == 1 {
					script, start, want = fmt.Sprintf("echo x > %s/confined-%d", outside, n), confinement.Start, 2
				}
				cmd := exec.Command("/bin/sh", "-c", script)
				cmd.Dir = work
				err := start(cmd)
				if err == nil {
					_ = cmd.Wait() // the code is checked
				}
				if err != nil || cmd.ProcessState.ExitCode() != want {
					t.Errorf("%q: %v %v", script, cmd.ProcessState, err)
				}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Errorf("this process cannot listen: %v", err)
					continue
				}
				l.Close()
				if err := os.WriteFile(fmt.Sprintf("%s/own-%d", outside, n), nil, 0o666); err != nil {
					t.Errorf("this process cannot write: %v", err)
				}
			}
		})
	}
	for n := range 2 * each {
		jobs <- n
	}
	close(jobs)
	wg.Wait()
	for pattern, want := range map[string]int{"free-*": each, "confined-*": 0, "own-*": 2 * each} {
		found, err := filepath.Glob(filepath.Join(outside, pattern))
		if err != nil || len(found) != want {
			t.Errorf("%d files %s, want %d: %v", len(found), pattern, want, err)
		}
	}
}

// TestDo confines a function of this process, and nothing else.
func TestDo(t *testing.T) {
	base := fixture(t)
	confinement := confine(t, readOnly, filepath.Join(base, "work"))
	path := filepath.Join(base, "work/new")
	err := confinement.Do(func() error { return os.WriteFile(path, nil, 0o666) })
	if !os.IsPermission(err) {
		t.Errorf("confined: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Errorf("outside: %v", err)
	}
}

// TestSwappedRoot replaces a root, or a folder above it, after the root was judged and before the command starts. The
// command may write only to the folder that was judged, or does not run.
func TestSwappedRoot(t *testing.T) {
	for _, swapped := range []string{"work/a/root", "work/a"} {
		t.Run(swapped, func(t *testing.T) {
			base := tree(t, "work/a/root/", "outside/root/")
			root := filepath.Join(base, "work/a/root")
			c := confine(t, write(root), filepath.Join(base, "work"))
			place, outside := filepath.Join(base, swapped), filepath.Join(base, "outside")
			if swapped == "work/a/root" {
				outside = filepath.Join(outside, "root")
			}
			must.OK(t, errors.Join(os.Rename(place, place+"-before"), os.Symlink(outside, place)))
			res := ran(t, run.Spec{
				Argv: []string{"sh", "-c", "echo x > " + root + "/new"}, Dir: base, Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c,
			})
			if _, err := os.Stat(filepath.Join(base, "outside/root/new")); res.ExitCode == 0 || err == nil {
				t.Errorf("it wrote outside: %d %q", res.ExitCode, res.Aggregated)
			}
		})
	}
}

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

// TestLimitOfProcesses checks that a command gets fewer processes than the server may have, and cannot get more.
func TestLimitOfProcesses(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil || own.Cur < 4000 {
		t.Skipf("this process may have %d processes: %v", own.Cur, err)
	}
	less := unix.Rlimit{Cur: 4000, Max: own.Max}
	must.OK(t, unix.Setrlimit(unix.RLIMIT_NPROC, &less))
	defer unix.Setrlimit(unix.RLIMIT_NPROC, &own)
	res := ran(t, run.Spec{
		Argv: []string{"bash", "-c", `until [ $(ulimit -Su) = 3744 ]; do :; done; ulimit -Su 4000 2> /dev/null; ulimit -Su`},
		Dir:  "/", Env: []string{"PATH=/usr/bin:/bin"}, Confinement: confine(t, readOnly, "/"),
	})
	if res.Aggregated != "3744\n" {
		t.Errorf("limit %s", res.Aggregated)
	}
}
