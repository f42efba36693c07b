package box_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/memdir"
)

func TestMain(m *testing.M) {
	box.Main()
	if len(os.Args) > 1 && os.Args[1] == probeWord {
		probe(os.Args[2], os.Args[3:])
		syscall.Exit(0) // os.Exit takes a second under the race detector
	}
	os.Exit(memdir.Run(m))
}
