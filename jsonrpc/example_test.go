package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Both sides handle requests and make calls.
func Example() {
	ctx := context.Background()
	left, right := jsonrpc.Pipe()

	m := new(jsonrpc.Mux)
	jsonrpc.Handle(m, "add", func(_ context.Context, p [2]int) (int, error) { return p[0] + p[1], nil })
	server := jsonrpc.NewPeer(left, m, nil)

	m = new(jsonrpc.Mux)
	jsonrpc.Handle(m, "name", func(context.Context, struct{}) (string, error) { return "client", nil })
	client := jsonrpc.NewPeer(right, m, nil)

	ended := make(chan error, 2)
	go func() { ended <- server.Run(ctx) }()
	go func() { ended <- client.Run(ctx) }()

	var sum int
	fmt.Println(client.Call(ctx, "add", []int{1, 2}, &sum), sum)
	var name string
	fmt.Println(server.Call(ctx, "name", nil, &name), name)
	err := client.Call(ctx, "subtract", []int{1, 2}, nil)
	fmt.Println(err, errors.Is(err, jsonrpc.CodeMethodNotFound))

	fmt.Println(client.Shutdown(ctx), <-ended, <-ended)
	// Output:
	// <nil> 3
	// <nil> client
	// method not found: subtract (-32601) true
	// <nil> <nil> <nil>
}

// A whole program: one side calls the other.
func ExamplePipe() {
	ctx := context.Background()
	a, b := jsonrpc.Pipe()
	m := new(jsonrpc.Mux)
	jsonrpc.Handle(m, "add", func(_ context.Context, p [2]int) (int, error) { return p[0] + p[1], nil })
	server, client := jsonrpc.NewPeer(a, m, nil), jsonrpc.NewPeer(b, nil, nil)
	go server.Run(ctx) // until the client closes
	go client.Run(ctx)
	var sum int
	fmt.Println(client.Call(ctx, "add", []int{1, 2}, &sum), sum, client.Close())
	// Output: <nil> 3 <nil>
}

// A handler may call back while it handles a request.
func ExampleRequest_Peer() {
	type question struct {
		Message string `json:"message"`
	}
	ctx := context.Background()
	left, right := jsonrpc.Pipe()
	server := jsonrpc.NewPeer(left, jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		var ok bool
		if err := r.Peer().Call(ctx, "ask", question{"Delete everything?"}, &ok); err != nil {
			return nil, err
		}
		return map[string]bool{"deleted": ok}, nil
	}), nil)
	m := new(jsonrpc.Mux)
	jsonrpc.Handle(m, "ask", func(_ context.Context, q question) (bool, error) {
		fmt.Println(q.Message, "No.")
		return false, nil
	})
	client := jsonrpc.NewPeer(right, m, nil)
	go func() { _ = server.Run(ctx) }()
	go func() { _ = client.Run(ctx) }()

	var result json.RawMessage
	err := client.Call(ctx, "delete", nil, &result)
	fmt.Println(string(result), err)
	_ = client.Close()
	<-server.Done()
	// Output:
	// Delete everything? No.
	// {"deleted":false} <nil>
}

// When the caller's context ends, the context of the handler on the other side ends too.
func ExampleCancelProfile() {
	ctx := context.Background()
	left, right := jsonrpc.Pipe()
	o := &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel}
	begun, stopped := make(chan struct{}), make(chan error)
	server := jsonrpc.NewPeer(left, jsonrpc.HandlerFunc(func(ctx context.Context, _ *jsonrpc.Request) (any, error) {
		close(begun)
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return nil, ctx.Err()
	}), o)
	client := jsonrpc.NewPeer(right, nil, o)
	go func() { _ = server.Run(ctx) }()
	go func() { _ = client.Run(ctx) }()

	impatient, cancel := context.WithCancel(ctx)
	go func() {
		<-begun
		cancel()
	}()
	fmt.Println(client.Call(impatient, "think", nil, nil))
	cause := <-stopped
	fmt.Println(errors.Is(cause, jsonrpc.ErrCancelled), cause)
	_ = client.Close()
	<-server.Done()
	// Output:
	// context canceled
	// true jsonrpc: cancelled by the other side: context canceled
}

// A language server: each message has a header with its length, and a cancelled request is answered.
func ExampleHeader() {
	ctx := context.Background()
	left, right := net.Pipe()
	server := jsonrpc.NewPeer(jsonrpc.Header(left, left, left), jsonrpc.HandlerFunc(func(ctx context.Context, _ *jsonrpc.Request) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}), &jsonrpc.Options{Cancellation: jsonrpc.LSPCancel})
	go func() { _ = server.Run(ctx) }()

	editor := jsonrpc.Header(right, right, right)
	_ = editor.Write(ctx, [][]byte{
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"workspace/symbol","params":{"query":"main"}}`),
		[]byte(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`),
	})
	answer, err := editor.Read(ctx)
	fmt.Println(string(answer), err)
	_ = editor.Close()
	<-server.Done()
	// Output:
	// {"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"request cancelled"}} <nil>
}

// datagrams is a custom transport with one message in each packet. It implements only the three methods. It needs no lock,
// since only one goroutine reads and only one at a time writes.
type datagrams struct {
	net.Conn
	buf []byte
}

func (d *datagrams) Read(context.Context) ([]byte, error) {
	n, err := d.Conn.Read(d.buf)
	return append([]byte(nil), d.buf[:n]...), err // the peer keeps what it gets
}

func (d *datagrams) Write(_ context.Context, messages [][]byte) error {
	for _, m := range messages {
		if _, err := d.Conn.Write(m); err != nil {
			return err
		}
	}
	return nil
}

func ExampleTransport() {
	ctx := context.Background()
	a, b := net.Pipe() // stands in for two sockets that keep packets apart
	m := new(jsonrpc.Mux)
	m.HandleRaw("echo", func(_ context.Context, params json.RawMessage) (any, error) { return params, nil })
	server := jsonrpc.NewPeer(&datagrams{a, make([]byte, 1<<16)}, m, nil)
	client := jsonrpc.NewPeer(&datagrams{b, make([]byte, 1<<16)}, nil, nil)
	go func() { _ = server.Run(ctx) }()
	go func() { _ = client.Run(ctx) }()

	var out json.RawMessage
	err := client.Call(ctx, "echo", []string{"hello"}, &out)
	fmt.Println(string(out), err)
	_ = client.Close()
	<-server.Done()
	// Output:
	// ["hello"] <nil>
}
