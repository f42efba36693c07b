package run_test

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// TestLeftovers lets a command leave a daemon, which lives until the leftovers are closed, even if it keeps writing.
func TestLeftovers(t *testing.T) {
	mark := "77" + strconv.Itoa(os.Getpid())
	processes := boxtest.Starter(t)
	var left run.Leftovers
	spec := run.Spec{
		Argv: []string{"sh", "-c", `(setsid sh -c "while sleep 0.01; do echo tick; done # $1" &) ; sleep 1000.$1 & echo done`, "sh", mark},
		Dir:  "/", Env: path, Leftovers: &left,
	}
	res, err := processes.Run(t.Context(), spec, nil)
	if err != nil || res.ExitCode != 0 || !strings.Contains(res.Stdout, "done\n") {
		t.Fatalf("%+v, %v", res, err)
	}
	daemons := find(mark)
	if len(commandLines(daemons)) != 2 {
		t.Errorf("left: %v, want two processes", daemons)
	}
	// Longer than a daemon lives that writes to a pipe without a reader.
	spec.Argv = []string{"sleep", "0.3"}
	if _, err := processes.Run(t.Context(), spec, nil); err != nil {
		t.Error(err)
	}
	if now := find(mark); len(commandLines(now)) != 2 {
		t.Errorf("of %v only %v is left", daemons, now)
	}
	left.Close()
	if now := find(mark); len(now) != 0 {
		t.Errorf("after Close: %v", now)
	}

	spec.Argv = []string{"sh", "-c", "sleep 1000.$0 &", mark}
	if _, err := processes.Run(t.Context(), spec, nil); err != nil {
		t.Error(err)
	}
	if now := find(mark); len(now) != 0 {
		t.Errorf("left after Close: %v", now)
	}
}

// TestTakenPID has a daemon give an orphan the process id of the command, which has ended. Its end is not the command's.
func TestTakenPID(t *testing.T) {
	const last = "/proc/sys/kernel/ns_last_pid"
	if err := unix.Access(last, unix.W_OK); err != nil || os.Getuid() != 0 {
		t.Skipf("only root chooses process ids: %v", err)
	}
	r, w, err := os.Pipe()
	must.OK(t, err)
	defer r.Close()
	take := `while kill -0 $0; do :; done; for n in $(seq 99); do echo $(($0-1)) >` + last + `; sleep 0.1 & [ $! = $0 ] && echo taken && exit; done`
	proc := startIn(t, boxtest.Starter(t), &exec.Cmd{
		Path: "/bin/bash", Args: []string{"bash", "-c", `setsid bash -c "$0" $$ 2>/dev/null & exit 3`, take}, Dir: "/", Env: path, Stdout: w,
	})
	out, err := io.ReadAll(r)
	if err != nil || string(out) != "taken\n" {
		t.Fatalf("%q, %v", out, err) // others took it 99 times
	}
	<-proc.Exited()
	if err := proc.End(); err != nil || proc.Code() != 3 {
		t.Errorf("code %d, %v", proc.Code(), err)
	}
}

// commandLines returns the command lines of processes. A shell that starts a program is two processes with
// one line for a moment.
func commandLines(found map[string]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(found)))
}

// TestKeptRunsAsOwn compares a command's process with one that this process starts.
func TestKeptRunsAsOwn(t *testing.T) {
	script := `echo $0; cat; pwd; ulimit -Sn; ulimit -Hn; umask; ls -l /proc/self/fd | grep -c -v pipe:; grep -E '^(Sig(Ign|Blk|Cgt)|NoNewPrivs|Cap|Cpus_allowed:)' /proc/self/status; cut -d' ' -f19 /proc/self/stat; env | sort`
	if err := run.SealDescriptors(); err != nil { // as the server does
		t.Fatal(err)
	}
	words, env := []string{"sh", "-c", script, "a\xffb"}, append([]string{"X=\xfe y\nz"}, path...)
	own := exec.Cmd{Path: "/bin/sh", Args: words, Dir: "/usr", Env: env, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	var out, errs strings.Builder
	own.Stdout, own.Stderr = &out, &errs
	must.OK(t, own.Run())
	kept, err := boxtest.Starter(t).Run(t.Context(), run.Spec{Argv: words, Dir: "/usr", Env: env}, nil)
	must.OK(t, err)
	if strings.ToValidUTF8(out.String(), "\uFFFD") != kept.Stdout || errs.String() != kept.Stderr {
		t.Errorf("without a launcher:\n%s%s\nwith one:\n%s%s", &out, &errs, kept.Stdout, kept.Stderr)
	}
}
