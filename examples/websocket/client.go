package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/coder/websocket"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/jsonrpc/wsrpc"
)

// call connects, asks for a backup, and answers the server's question in the meantime.
func call(ctx context.Context, url string, confirm bool, out io.Writer) error {
	conn, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		return err
	}
	mux := &jsonrpc.Mux{}
	jsonrpc.Handle(mux, "confirm", func(_ context.Context, p confirmParams) (bool, error) {
		fmt.Fprintf(out, "server asks: %s client answers: %t\n", p.Question, confirm)
		return confirm, nil
	})
	jsonrpc.HandleNotify(mux, "progress", func(_ context.Context, p progressParams) {
		fmt.Fprintf(out, "server reports: %d of %d\n", p.Done, p.Of)
	})
	peer := jsonrpc.NewPeer(wsrpc.New(conn), mux, &jsonrpc.Options{
		Inline: []string{"progress"}, // so that all progress is shown before the answer
	})
	ended := make(chan error, 1)
	go func() { ended <- peer.Run(ctx) }()

	fmt.Fprintln(out, "client calls: backup")
	var result backupResult
	err = peer.Call(ctx, "backup", backupParams{"/home"}, &result)
	var no *jsonrpc.Error
	switch {
	case err == nil:
		fmt.Fprintf(out, "server answers: %d files\n", result.Files)
	case errors.As(err, &no): // an error answer is an answer too
		fmt.Fprintln(out, "server answers:", no)
		err = nil
	}
	_ = peer.Close()
	return errors.Join(err, <-ended)
}
