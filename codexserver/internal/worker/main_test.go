package worker_test

import (
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/internal/memdir"
)

func TestMain(m *testing.M) { os.Exit(memdir.Run(m)) }
