package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// client is an MCP client with a person at its terminal.
type client struct {
	answer string        // "" asks the person
	lines  <-chan string // what the person types
	out    io.Writer
}

// do connects over t, calls the tool codex, and shows its answer.
func (c *client) do(ctx context.Context, t jsonrpc.Transport, prompt, cwd string) error {
	mux := &jsonrpc.Mux{}
	mcptypes.ElicitationCreate.Handle(mux, c.decide)
	jsonrpc.HandleNotify(mux, "codex/event", c.show)
	peer := jsonrpc.NewPeer(t, mux, &jsonrpc.Options{
		Cancellation: jsonrpc.MCPCancel,
		Inline:       []string{"codex/event"}, // so that all of a call's events are shown before its result
	})
	ended := make(chan error, 1)
	go func() { ended <- peer.Run(ctx) }()
	defer func() { peer.Close(); <-ended }()

	hello, err := mcptypes.Initialize.Call(ctx, peer, &mcptypes.InitializeRequestParams{
		ProtocolVersion: mcptypes.ProtocolVersion,
		Capabilities:    mcptypes.ClientCapabilities{Elicitation: map[string]json.RawMessage{}},
		ClientInfo:      mcptypes.Implementation{Name: "quickstart", Version: "1"},
	})
	if err != nil {
		return err
	}
	if err := mcptypes.NotificationsInitialized.Notify(ctx, peer, nil); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "connected to %s, MCP %s\ntask: %s\n", hello.ServerInfo.Name, hello.ProtocolVersion, prompt)

	arguments, err := json.Marshal(map[string]string{"prompt": prompt, "cwd": cwd})
	if err != nil {
		return err
	}
	result, err := mcptypes.ToolsCall.Call(ctx, peer, &mcptypes.CallToolRequestParams{Name: "codex", Arguments: arguments})
	if err != nil {
		return err
	}
	for _, block := range result.Content {
		if text, ok := block.(*mcptypes.TextContent); ok {
			fmt.Fprintf(c.out, "answer: %s\n", text.Text)
		}
	}
	return nil
}

// show prints what happens while the tool runs.
func (c *client) show(_ context.Context, p struct {
	Msg json.RawMessage `json:"msg"`
}) {
	event, err := protocol.ParseEvent(p.Msg)
	if err != nil {
		fmt.Fprintln(c.out, "  event:", err)
		return
	}
	switch e := event.(type) {
	case protocol.ExecCommandBegin:
		fmt.Fprintf(c.out, "  running: %s\n", strings.Join(e.Command, " "))
	case protocol.ExecCommandOutputDelta:
		for line := range strings.Lines(string(e.Chunk)) {
			fmt.Fprintf(c.out, "  | %s\n", strings.TrimRight(line, "\n"))
		}
	case protocol.ExecCommandEnd:
		fmt.Fprintf(c.out, "  exit code %d\n", e.ExitCode)
	case protocol.AgentMessage:
		fmt.Fprintf(c.out, "  model: %s\n", e.Message)
	case protocol.AgentMessageDelta, protocol.AgentReasoningDelta, protocol.TokenCount: // there are many
	default:
		fmt.Fprintf(c.out, "  event %s\n", event.EventType())
	}
}

// decide puts the server's question to the person.
func (c *client) decide(ctx context.Context, p *mcptypes.ElicitRequestParams) (*mcptypes.ElicitResult, error) {
	fmt.Fprintln(c.out, p.Message)
	action := actionOf(c.answer)
	for action == "" {
		fmt.Fprint(c.out, "accept, decline or cancel? ")
		select {
		case line, ok := <-c.lines:
			if action = actionOf(line); !ok {
				action = mcptypes.ElicitResultActionDecline // nobody is there
			}
		case <-ctx.Done(): // ctrl-C, or the question was withdrawn
			return nil, ctx.Err()
		}
	}
	fmt.Fprintf(c.out, "=> %s\n", action)
	return &mcptypes.ElicitResult{Action: action}, nil
}

// actionOf is the action that s is or begins, "" if it is none.
func actionOf(s string) mcptypes.ElicitResultAction {
	for _, action := range []mcptypes.ElicitResultAction{
		mcptypes.ElicitResultActionAccept, mcptypes.ElicitResultActionDecline, mcptypes.ElicitResultActionCancel,
	} {
		if s = strings.TrimSpace(s); s != "" && strings.HasPrefix(string(action), s) {
			return action
		}
	}
	return ""
}
