package sandbox_test

import (
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	if len(os.Args) > 1 && os.Args[1] == probeWord {
		probe(os.Args[2], os.Args[3:])
		return
	}
	os.Exit(m.Run())
}
