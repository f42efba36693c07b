package workerlink_test

import (
	"net"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/codexserver/store/storetest"
	"github.com/codexmcp/codexmcp/internal/workerlink"
)

// serve serves a store on a connection, and returns the other end.
func serve(t *testing.T, s store.Store) *workerlink.Remote {
	node, worker := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- workerlink.ServeStore(t.Context(), node, s) }()
	r := workerlink.NewRemote(worker)
	t.Cleanup(func() {
		_ = r.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Open {
		dir := t.TempDir()
		return func(epoch uint64) (store.Store, error) {
			d, err := store.OpenDir(dir, epoch)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { _ = d.Close() })
			return serve(t, d), nil
		}
	})
}
