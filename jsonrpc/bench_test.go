package jsonrpc_test

import (
	"context"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

func BenchmarkCall(b *testing.B) {
	ta, tb := jsonrpc.Pipe()
	o := &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel}
	x, y := jsonrpc.NewPeer(ta, nil, o), jsonrpc.NewPeer(tb, echoMux(), o)
	go func() { _ = x.Run(context.Background()) }()
	go func() { _ = y.Run(context.Background()) }()
	defer func() { _, _ = x.Close(), y.Close() }()
	in := text{strings.Repeat("x", 150)}
	b.ReportAllocs()
	for b.Loop() {
		var out text
		if err := x.Call(context.Background(), "echo", in, &out); err != nil {
			b.Fatal(err)
		}
	}
}
