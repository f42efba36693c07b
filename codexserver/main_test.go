package codexserver_test

import (
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
)

func TestMain(m *testing.M) {
	native.Main() // this may be a launcher
	os.Exit(m.Run())
}
