package store_test

import (
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
