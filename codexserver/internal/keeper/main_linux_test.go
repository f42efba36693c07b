package keeper_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/keeper"
)

// The confinements of commands whose start is reported late, never, or whose keeper
// is killed before.
const (
	late   = "late"
	never  = "never"
	killed = "killed"
)

func TestMain(m *testing.M) {
	keeper.Main(func(cmd *exec.Cmd, confinement []byte, _ []*os.File) error {
		err := cmd.Start()
		switch string(confinement) {
		case late:
			<-time.After(100 * time.Millisecond)
		case killed:
			return errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		case never:
			return errors.Join(err, cmd.Wait())
		}
		return err
	})
	os.Exit(m.Run())
}
