package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestMemoryOfALongAnswer serves an answer of 32 MiB to a client that reads, and bounds the
// memory for it. The answer is sent twice, in two events, and cut in the result.
func TestMemoryOfALongAnswer(t *testing.T) {
	const size = 32 << 20
	text := strings.Repeat("x", size)
	e := engine.TurnFunc(func(_ context.Context, host engine.Host, _ []protocol.InputItem) error {
		host.Emit(protocol.AgentMessage{Message: text})
		return nil
	})
	in, feed := io.Pipe()
	out, drain := io.Pipe()
	served := make(chan error, 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		served <- codexserver.New(e, nil).Serve(context.Background(), jsonrpc.Lines(in, drain, drain))
		drain.Close()
	}()
	go func() {
		fmt.Fprintln(feed, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go"}}}`)
		feed.Close()
	}()
	n, err := io.Copy(io.Discard, out)
	if err := errors.Join(err, <-served); err != nil || n < 2*size || n > 2*size+1<<18 {
		t.Errorf("%d bytes on the wire, %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if times := float64(after.TotalAlloc-before.TotalAlloc) / size; times > 20 { // it was 23; the race detector adds to the 11 that it is without
		t.Errorf("memory of %.1f times the answer was used", times)
	} else {
		t.Logf("memory of %.1f times the answer was used, %.1f held", times, float64(after.HeapSys)/size)
	}
}
