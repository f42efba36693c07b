package tool_test

import (
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}
