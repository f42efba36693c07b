package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json"
)

// earlyAfter is how long a client's server/discover waits for the shared server. Clients that
// get no answer in a second or two take the server for one of an older version of MCP.
const earlyAfter = 300 * time.Millisecond

// maxEarly is the size of the largest first message that is looked at, in bytes.
const maxEarly = 16 << 10

// opening is a client's input, whose first message may be answered before there is a server
// for it.
type opening struct {
	in   io.Reader
	head chan []byte // what was read ahead and not answered, once
	rest []byte
}

// open reads the first message ahead. If it is server/discover, and ready is not closed after
// the time, open writes the answer, and the message is not part of the input.
func open(in io.Reader, out io.Writer, ready <-chan struct{}, after time.Duration, answer func(request []byte) ([]byte, error)) *opening {
	o := &opening{in: in, head: make(chan []byte, 1)}
	go func() {
		defer close(o.head)
		b := bufio.NewReaderSize(in, maxEarly)
		line, err := b.ReadSlice('\n')
		ahead, _ := b.Peek(b.Buffered())
		if err != nil || !isDiscover(line) {
			o.head <- append(line, ahead...)
			return
		}
		select {
		case <-ready:
		case <-time.After(after):
			if text, err := answer(line); err == nil {
				_, _ = out.Write(append(text, '\n')) // the next write fails as well
				line = nil
			}
		}
		o.head <- append(line, ahead...)
	}()
	return o
}

// Read implements [io.Reader].
func (o *opening) Read(p []byte) (int, error) {
	if head, ok := <-o.head; ok {
		o.rest = head
	}
	if len(o.rest) > 0 {
		n := copy(p, o.rest)
		if o.rest = o.rest[n:]; len(o.rest) == 0 {
			o.rest = nil // its buffer
		}
		return n, nil
	}
	return o.in.Read(p)
}

func isDiscover(line []byte) bool {
	var m struct {
		ID     any    `json:"id"`
		Method string `json:"method"`
	}
	return json.Unmarshal(line, &m) == nil && m.ID != nil && m.Method == "server/discover"
}

// describe answers a request as the shared server will, except that it does not know the engine
// yet. It asks a server with the engine that needs no other program, which offers the same tools.
func (c *configuration) describe(ctx context.Context, o *options, request []byte) (answer []byte, err error) {
	e, err := native.New(c.nativeOptions())
	if err != nil {
		return nil, err
	}
	here, there := jsonrpc.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- codexserver.New(e, c.serverOptions(o)).Serve(ctx, there) }()
	if err = here.Write(ctx, [][]byte{request}); err == nil {
		answer, err = here.Read(ctx)
	}
	return answer, errors.Join(err, here.Close(), <-ended, e.Close())
}
