// Command peer is two peers that call each other.
package main

import (
	"context"
	"fmt"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

func main() {
	ctx, mux, sum := context.Background(), new(jsonrpc.Mux), 0
	jsonrpc.Handle(mux, "add", func(ctx context.Context, n [2]int) (int, error) {
		return n[0] + n[1], jsonrpc.RequestFrom(ctx).Peer().Call(ctx, "seen", n, nil)
	})
	jsonrpc.Handle(mux, "seen", func(_ context.Context, n [2]int) (any, error) { return fmt.Println("seen", n) })
	left, right := jsonrpc.Pipe()
	server, client := jsonrpc.NewPeer(left, mux, nil), jsonrpc.NewPeer(right, mux, nil)
	go func() { _ = server.Run(ctx) }()
	go func() { _ = client.Run(ctx) }()
	fmt.Println(client.Call(ctx, "add", []int{1, 2}, &sum), sum)
}
