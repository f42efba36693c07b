package run_test

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv"
)

// The confinements select how the launcher behaves: it reports the start late or never, is
// killed before it does, or the child never executes a program.
const (
	late    = "late"
	never   = "never"
	killed  = "killed"
	forking = "forking"
)

// withoutMain is set in a process that does not begin with Main.
const withoutMain = "PROC_TEST_WITHOUT_MAIN"

// serverVar holds the words of a command in a process that stands for the server.
const serverVar = "RUN_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(withoutMain) != "" {
		os.Exit(m.Run())
	}
	run.Main(func(confinement string, _ int, start func(*run.Rooms) error) error {
		if confinement == forking {
			runtime.GOMAXPROCS(2) // as before each start without rooms
			go litter()
			return fork()
		}
		err := start(nil)
		switch confinement {
		case late:
			<-time.After(100 * time.Millisecond)
		case killed:
			return errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		case never:
			_, err = syscall.Wait4(-1, nil, 0, nil)
		}
		return err
	})
	if words := os.Getenv(serverVar); words != "" {
		os.Exit(serve(words))
	}
	testenv.Forget()
	// Children of the tests begin with the usual signals, also under nohup and in the background of a script.
	for _, sig := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	os.Exit(m.Run())
}

// fork starts a process that stops and never executes a program. It waits until the
// process has ended, as starting a command does.
//
//go:norace
func fork() error {
	const cloneVfork = 0x4000
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, cloneVfork|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && errno == 0 {
		self, _, _ := syscall.RawSyscall(syscall.SYS_GETPID, 0, 0, 0)
		for {
			syscall.RawSyscall(syscall.SYS_KILL, self, uintptr(syscall.SIGSTOP), 0)
		}
	}
	return errors.Join(errno, errors.New("no program"))
}

func litter() {
	for range 256 {
		garbage = make([]byte, 1<<20)
	}
}

var garbage []byte
