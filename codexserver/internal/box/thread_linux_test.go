package box_test

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// TestStartingThread keeps the thread that starts a command alive while the command tries
// to reach it. Landlock does not separate them, because both have the same domain.
func TestStartingThread(t *testing.T) {
	confinement := confine(t, readOnly, "/")
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, unix.SIGUSR1, unix.SIGUSR2)
	defer signal.Stop(signals)
	for _, probe := range []string{
		"threads' memory", "threads' environ", "threads' files", "signal threads", "kill threads", "queue to threads", "pidfd of threads",
		"pidfd of threads' folders", "signal threads for files", "signal threads for files, the new way", "signal threads for sockets",
	} {
		t.Run(probe, func(t *testing.T) {
			err := confinement.Do(func() error {
				out, err := exec.Command("/proc/self/exe", probeWord, probe, strconv.Itoa(os.Getpid())).Output()
				switch string(out) {
				case "EACCES", "EPERM":
				case "ENOSYS": // pidfd_send_signal
				case "EINVAL": // before Linux 6.9 there are no such descriptors
				default:
					t.Errorf("%s, want EACCES or EPERM", out)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	// A signal that arrives before this one came from a command.
	must.OK(t, unix.Kill(os.Getpid(), unix.SIGUSR1))
	if got := <-signals; got != unix.SIGUSR1 {
		t.Errorf("a command sent the server %v", got)
	}
}

// TestOtherCommands checks that a command cannot reach another one of the same confinement.
func TestOtherCommands(t *testing.T) {
	processes := boxtest.Starter(t)
	c := confine(t, readOnly, "/")
	other := &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "echo; read x"}, Dir: "/", Env: []string{"A_KEY=secret"}}
	in, err := other.StdinPipe()
	must.OK(t, err)
	out, err := other.StdoutPipe()
	must.OK(t, err)
	must.OK(t, c.Start(other))
	if _, err := out.Read(make([]byte, 1)); err != nil { // it runs
		t.Fatal(err)
	}
	for _, probe := range []string{"environ", "read memory", "threads' files", "signal", "ptrace", "prlimit"} {
		spec := run.Spec{Argv: []string{"/proc/self/exe", probeWord, probe, strconv.Itoa(other.Process.Pid)}, Dir: "/", Confinement: c}
		res, err := processes.Run(t.Context(), spec, nil)
		if err != nil || res.Aggregated != "EACCES" && res.Aggregated != "EPERM" {
			t.Errorf("%s: %+v, %v, want EACCES or EPERM", probe, res, err)
		}
	}
	in.Close()
	_ = other.Wait() // it fails: read found no line
}
