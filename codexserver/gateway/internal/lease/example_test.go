package lease_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/broker"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
)

// A node makes its entry, takes a user, and admits requests with the epoch of the lease. A front finds the node.
func Example() {
	ctx, quiet := context.Background(), slog.New(slog.DiscardHandler)
	dir, err := os.MkdirTemp("", "lease")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b, err := broker.Connect(broker.Options{Folder: dir, Logger: quiet})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	users, err := b.Open(ctx, broker.Bucket{Name: lease.Bucket, MaxValue: lease.MaxValue})
	if err != nil {
		log.Fatal(err)
	}
	nodes, err := b.Open(ctx, broker.Bucket{Name: placement.Bucket, TTL: time.Minute, MaxValue: placement.MaxValue})
	if err != nil {
		log.Fatal(err)
	}
	leases := lease.New(users, placement.New(nodes), time.Minute)

	h := leases.NewHolder(lease.HolderOptions{
		ID: "P1", Describe: func() placement.Node { return placement.Node{Name: "m1", Address: "10.0.0.1:4520"} },
		Lost:   func(user string) { fmt.Println("the worker of", user, "ends") },
		Logger: quiet,
	})
	if err := h.Join(ctx); err != nil {
		log.Fatal(err)
	}
	taken, err := h.Take(ctx, "ann")
	if err != nil {
		log.Fatal(err)
	}
	found, err := leases.Get(ctx, "ann")
	fmt.Println(found.Node, found.Address, found == taken, err)

	_, release, err := h.Hold(ctx, "ann", found.Epoch)
	if err != nil {
		log.Fatal(err)
	}
	release()
	fmt.Println(h.Close(ctx))
	// Output:
	// m1 10.0.0.1:4520 true <nil>
	// the worker of ann ends
	// <nil>
}
