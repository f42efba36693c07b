package keeper_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/keeper"
)

func TestMain(m *testing.M) {
	keeper.Main(func(cmd *exec.Cmd, _ []byte, _ []*os.File) error { return cmd.Start() })
	os.Exit(m.Run())
}
