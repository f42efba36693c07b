package hosts_test

import (
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
)

func TestMain(m *testing.M) {
	box.Main()
	os.Exit(m.Run())
}
