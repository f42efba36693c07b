package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

const (
	hello  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
	oneJob = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"wait:10m touch"}}}`
	ownJob = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"wait:10m touch"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// slowStart is an engine whose conversations do not start. With Codex a start takes half a second.
type slowStart struct{}

func (slowStart) Start(ctx context.Context, _ protocol.Config, _ engine.Host) (engine.Conversation, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("thread/start: %w", context.Cause(ctx))
}

// TestEndOfInput sends files of messages, whose input ends before the first turn begins.
func TestEndOfInput(t *testing.T) {
	const (
		finished    = `"text":"touch: denied"`
		interrupted = `"text":"Turn aborted: the client closed the connection"`
	)
	for _, tt := range []struct {
		name  string
		e     engine.Engine
		input []string
		want  string
	}{
		{"calls alone", servertest.Script(), []string{oneJob}, finished},
		{"a session", servertest.Script(), []string{hello, oneJob}, interrupted},
		{"a session that began after the call", servertest.Script(), []string{oneJob, hello}, interrupted},
		{"a request of MCP 2026-07-28", servertest.Script(), []string{ownJob}, interrupted},
		{"a session whose conversation starts", slowStart{}, []string{hello, oneJob}, interrupted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				input := strings.NewReader(strings.Join(tt.input, "\n") + "\n")
				must(t, codexserver.New(tt.e, nil).Serve(t.Context(), jsonrpc.Lines(input, &out, io.NopCloser(nil))))
				if got := out.String(); !strings.Contains(got, tt.want) || strings.Contains(got, "elicitation/create") { // nobody is there to be asked
					t.Errorf("the output lacks %s, or asks:\n%s", tt.want, got)
				}
			})
		})
	}
}

// writer is an [io.Writer].
type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

// TestEndOfInputInAQuestion ends the input while a question is open.
func TestEndOfInputInAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, input := io.Pipe()
		var out strings.Builder
		answers := writer(func(b []byte) (int, error) {
			switch line := string(b); {
			case strings.Contains(line, "serverInfo"): // before it the client cannot be asked
				go fmt.Fprintln(input, oneJob)
			case strings.Contains(line, "elicitation/create"):
				input.Close()
			}
			return out.Write(b)
		})
		go fmt.Fprintln(input, hello)
		must(t, codexserver.New(engine.TurnFunc(servertest.AskExec), nil).Serve(t.Context(), jsonrpc.Lines(in, answers, io.NopCloser(nil))))
		_, after, asked := strings.Cut(out.String(), "elicitation/create")
		if !asked || !strings.Contains(after, `"isError":true`) {
			t.Errorf("the call was not asked, or has no result:\n%s", &out)
		}
	})
}

// TestSignalEndsFinishing interrupts calls that finish after the end of the input.
func TestSignalEndsFinishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var out strings.Builder
		served := make(chan error, 1)
		go func() {
			served <- codexserver.New(servertest.Script(), nil).Serve(ctx, jsonrpc.Lines(strings.NewReader(oneJob+"\n"), &out, io.NopCloser(nil)))
		}()
		synctest.Wait()
		cancel(errors.New("signal"))
		must(t, <-served)
		if !strings.Contains(out.String(), "Turn aborted: signal") {
			t.Errorf("the call was answered\n%s", &out)
		}
	})
}
