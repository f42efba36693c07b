package workertest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
)

func TestDir(t *testing.T) {
	workertest.Run(t, func(t *testing.T) workertest.Open {
		dir := t.TempDir()
		return func(epoch uint64) (worker.Store, error) { return workertest.OpenDir(dir, epoch) }
	})
}

// TestCheckName has names at the bounds. Package workertest has the others.
func TestCheckName(t *testing.T) {
	t.Parallel()
	part := strings.Repeat("a", 255)
	for name, want := range map[string]bool{
		"a": true, "A-_.9/z": true, part: true, part + "a": false, part + "/" + part + "/": false,
		part + "/" + part[1:] + "/a": true, part + "/" + part + "/a": false, // of 512 and 513 bytes
	} {
		if err := worker.CheckName(name); (err == nil) != want || err != nil && !errors.Is(err, worker.ErrName) {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
}
