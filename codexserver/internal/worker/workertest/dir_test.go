package workertest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
)

// openDir returns a function that opens a folder for writers.
func openDir(t *testing.T, dir string) workertest.Open {
	return func(epoch uint64) (worker.Store, error) {
		d, err := workertest.OpenDir(dir, epoch)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = d.Close() })
		return d, nil
	}
}

func TestDir(t *testing.T) {
	workertest.Run(t, func(t *testing.T) workertest.Open { return openDir(t, t.TempDir()) })
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
