package storetest_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/codexserver/store/storetest"
)

// A test of a store of your own calls Run like this one.
func Example() {
	_ = func(t *testing.T) { // TestStore
		storetest.Run(t, func(t *testing.T) storetest.Open {
			dir := t.TempDir()
			return func(epoch uint64) (store.Store, error) { return store.OpenDir(dir, epoch) }
		})
	}
	// Output:
}
