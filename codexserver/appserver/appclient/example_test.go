package appclient_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// A turn that asks whether a command may run. [appclient.Start] starts the installed Codex in place
// of the app-server of this program.
func Example() {
	ctx := context.Background()
	ours, theirs := jsonrpc.Pipe()
	go appServer(ctx, theirs)

	c := appclient.New(ours, &appclient.Options{
		Answers: appclient.Answers{Command: func(_ context.Context, q *apptypes.CommandApproval) (apptypes.Decision, error) {
			fmt.Printf("run %q in %q?\n", q.Command, q.Cwd)
			return apptypes.Decision{Decision: apptypes.CommandExecutionApprovalDecisionAccept}, nil
		}},
	})
	defer c.Close()
	if err := c.Initialize(ctx); err != nil {
		fmt.Println(err)
		return
	}
	var thread apptypes.ThreadReply
	if err := c.Call(ctx, apptypes.CallThreadStart, &apptypes.ThreadParams{Sandbox: apptypes.SandboxModeReadOnly}, &thread); err != nil {
		fmt.Println(err)
		return
	}
	end, err := c.Turn(ctx, &apptypes.TurnParams{ThreadID: thread.Thread.ID, Input: appclient.Text("Install it.")}, nil)
	fmt.Println(c.Server().Version, end.Status, err)

	// Output:
	// run "make install" in "/work"?
	// decision: accept
	// 0.169.0 completed <nil>
}

// appServer is an app-server with one turn.
func appServer(ctx context.Context, t jsonrpc.Transport) {
	m := &jsonrpc.Mux{}
	p := jsonrpc.NewPeer(t, m, &jsonrpc.Options{OmitVersion: true})
	answer := func(method, result string) {
		jsonrpc.Handle(m, method, func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(result), nil })
	}
	answer("initialize", `{"userAgent":"test/0.169.0 (Test)","codexHome":"/home"}`)
	answer("thread/start", `{"thread":{"id":"t"}}`)
	jsonrpc.Handle(m, "turn/start", func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		begun := json.RawMessage(`{"threadId":"t","turn":{"id":"r","status":"inProgress","items":[]}}`)
		if err := p.Notify(ctx, apptypes.NoteTurnStarted, begun); err != nil { // else the end could come before anything has named the turn
			return nil, err
		}
		var reply apptypes.Decision
		question := json.RawMessage(`{"threadId":"t","turnId":"r","itemId":"i","startedAtMs":1,"command":"make install","cwd":"/work"}`)
		if err := p.Call(ctx, apptypes.AskItemCommandExecutionRequestApproval, question, &reply); err != nil {
			return nil, err
		}
		fmt.Println("decision:", reply.Decision)
		err := p.Notify(ctx, apptypes.NoteTurnCompleted, json.RawMessage(`{"threadId":"t","turn":{"id":"r","status":"completed","items":[]}}`))
		return json.RawMessage(`{"turn":{"id":"r","status":"inProgress","items":[]}}`), err
	})
	_ = p.Run(ctx)
}
