package mcpcall

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// Join runs serve with the other end of a transport. The transport's Close ends it and waits
// for it.
func Join(serve func(context.Context, jsonrpc.Transport) error) jsonrpc.Transport {
	ours, theirs := jsonrpc.Pipe()
	served := make(chan error, 1)
	go func() {
		err := serve(context.Background(), theirs)
		_ = theirs.Close() // the client sees the end, if it has not caused it
		served <- err
	}()
	return &joint{ours, sync.OnceValue(func() error {
		err := ours.Close()
		if end := <-served; !errors.Is(end, io.ErrClosedPipe) { // that is how this end closes
			err = errors.Join(err, end)
		}
		return err
	})}
}

type joint struct {
	jsonrpc.Transport
	close func() error
}

// Close implements [jsonrpc.Transport].
func (j *joint) Close() error { return j.close() }
