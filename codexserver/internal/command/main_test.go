package command_test

import (
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main() // this process may be a keeper
	os.Exit(m.Run())
}
