// Command embed is codex-mcp with its own engine, a function of ten lines. The engine has no
// model: it writes each task into a file, if the user allows it.
//
// Configure it in an MCP client like codex-mcp:
//
//	go run ./examples/embed -file /path/to/note.txt
//
// Or act as the client: start it in a terminal and paste these lines one at a time. The last
// one is your answer.
//
//	{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"me","version":"1"}}}
//	{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"buy milk"}}}
//	{"jsonrpc":"2.0","id":0,"result":{"action":"accept"}}
//
// It ends when its input ends, or on Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func main() {
	file := flag.String("file", "note.txt",
		"the `file` to write tasks into, by default in the folder of the conversation")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := codexserver.New(notes(*file), nil).Serve(ctx, jsonrpc.Stdio()); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

// notes returns the engine. A TurnFunc is called once per turn. It finds the folder of the
// conversation in its configuration, asks its host before it acts and emits events; the end
// of ctx interrupts it. The server emits the events that begin and end the turn.
func notes(file string) engine.TurnFunc {
	return func(ctx context.Context, host engine.Host, input []protocol.InputItem) error {
		task, path := protocol.TextOf(input), file
		if !filepath.IsAbs(path) {
			path = filepath.Join(engine.ConfigOf(ctx).Cwd, file)
		}
		change := protocol.FileChange{Add: &protocol.FileContent{Content: task}}
		out := host.Ask(ctx, approval.Patch{CallID: "1", Changes: map[string]protocol.FileChange{path: change}})
		if !out.Decision.Approves() {
			return errors.New("nothing written: " + out.ForModel())
		}
		host.Emit(protocol.AgentMessage{Message: "That goes into " + path})
		return os.WriteFile(path, []byte(task), 0o600)
	}
}
