package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/codexserver/store/storetest"
)

// openDir returns a function that opens a folder for writers.
func openDir(t *testing.T, dir string) storetest.Open {
	return func(epoch uint64) (store.Store, error) {
		d, err := store.OpenDir(dir, epoch)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = d.Close() })
		return d, nil
	}
}

func TestDir(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Open { return openDir(t, t.TempDir()) })
}

// TestCheckName has names at the bounds. Package storetest has the others.
func TestCheckName(t *testing.T) {
	t.Parallel()
	part := strings.Repeat("a", 255)
	for name, want := range map[string]bool{
		"a": true, "A-_.9/z": true, part: true, part + "a": false, part + "/" + part + "/": false,
		part + "/" + part[1:] + "/a": true, part + "/" + part + "/a": false, // of 512 and 513 bytes
	} {
		if err := store.CheckName(name); (err == nil) != want || err != nil && !errors.Is(err, store.ErrName) {
			t.Errorf("a name of %d bytes: %v", len(name), err)
		}
	}
}
