package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// mux routes the server's questions, which are requests, and its events.
func (c *client) mux() *jsonrpc.Mux {
	m := &jsonrpc.Mux{}
	jsonrpc.Handle(m, "execCommandApproval", func(ctx context.Context, p protocol.ExecCommandApprovalParams) (answer, error) {
		return c.ask(ctx, "run", p.Command), nil
	})
	jsonrpc.Handle(m, "applyPatchApproval", func(ctx context.Context, p protocol.ApplyPatchApprovalParams) (answer, error) {
		return c.ask(ctx, "change", slices.Sorted(maps.Keys(p.FileChanges))), nil
	})
	m.Default(jsonrpc.HandlerFunc(c.event)) // an event's type is part of its method
	return m
}

// answer is the result of both questions.
type answer struct {
	Decision elicit.Decision `json:"decision"`
}

// ask lets the person decide. Only a plain yes approves.
func (c *client) ask(ctx context.Context, verb string, words []string) answer {
	fmt.Fprintf(c.out, "may Codex %s %q? (yes, no, stop) ", verb, words) // %q shows invisible characters
	switch line, ok := c.read(ctx); {
	case !ok || line == "stop":
		return answer{elicit.Abort} // ends the turn
	case line == "yes":
		return answer{elicit.Approved}
	}
	return answer{elicit.Denied} // the model reads that and continues
}

// read returns the next line. ok is false if the input ended, or ctx, or the connection.
func (c *client) read(ctx context.Context) (line string, ok bool) {
	select {
	case line, ok = <-c.lines:
	case <-ctx.Done(): // ctrl-C, or the server has withdrawn its question
	case <-c.peer.Done():
	}
	return line, ok
}

// event handles codex/event/… and ignores other notifications.
func (c *client) event(_ context.Context, r *jsonrpc.Request) (any, error) {
	if !strings.HasPrefix(r.Method, "codex/event/") {
		return nil, jsonrpc.CodeMethodNotFound
	}
	var p struct {
		Msg json.RawMessage `json:"msg"`
	}
	if err := r.Bind(&p); err != nil {
		return nil, err
	}
	if c.show(p.Msg) {
		c.ended <- struct{}{}
	}
	return nil, nil
}

// show prints an event, and reports whether it ends a turn.
func (c *client) show(raw []byte) (end bool) {
	m, err := protocol.ParseEvent(raw)
	if err != nil {
		fmt.Fprintln(c.out, "event:", err)
	}
	switch m := m.(type) {
	case protocol.UserMessage: // in the history of a resumed conversation
		if m.Kind == protocol.UserPlain {
			fmt.Fprintln(c.out, "you:", m.Message)
		}
	case protocol.AgentMessage:
		fmt.Fprintln(c.out, "codex:", m.Message)
	case protocol.ExecCommandBegin:
		fmt.Fprintln(c.out, "$", strings.Join(m.Command, " "))
	case protocol.ExecCommandOutputDelta:
		fmt.Fprintf(c.out, "%s", m.Chunk)
	case protocol.Error:
		fmt.Fprintln(c.out, "error:", m.Message)
	case protocol.TurnAborted:
		fmt.Fprintln(c.out, "stopped:", m.Reason)
		return true
	case protocol.TaskComplete:
		return true
	}
	return false
}
