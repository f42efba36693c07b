package box_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/memdir"
)

func TestMain(m *testing.M) {
	box.Main()
	if len(os.Args) > 1 && os.Args[1] == probeWord {
		args := os.Args[3:]
		for i, arg := range args {
			if arg == parent {
				args[i] = strconv.Itoa(os.Getppid())
			}
		}
		probe(os.Args[2], args)
		syscall.Exit(0) // os.Exit takes a second under the race detector
	}
	os.Exit(memdir.Run(m))
}
