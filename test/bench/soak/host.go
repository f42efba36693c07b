package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// host serves clients that dial, until its input ends. It prints its address, and for each
// line of input its number of goroutines.
func host(ctx context.Context) error {
	e, err := native.New(nil)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, e.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := codexserver.New(e, &codexserver.Options{Approvals: elicit.Options{Timeout: question}})
	var sessions sync.WaitGroup
	sessions.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			sessions.Go(func() { _ = server.Serve(ctx, jsonrpc.Lines(c, c, c)) }) // clients leave in every way
		}
	})
	fmt.Println(listener.Addr())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(runtime.NumGoroutine())
	}
	stop()
	listener.Close()
	sessions.Wait()
	return e.Close()
}
