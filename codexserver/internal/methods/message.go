package methods

import (
	"context"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcp"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func (ss *session) addMessageMethods(m *jsonrpc.Mux) {
	jsonrpc.Handle(m, "sendUserMessage", ss.sendUserMessage)
	m.Handle("interruptConversation", jsonrpc.HandlerFunc(ss.interruptConversation))
}

func (ss *session) sendUserMessage(ctx context.Context, p protocol.SendUserMessageParams) (empty, error) {
	t, err := ss.find(p.ConversationID)
	if err != nil {
		return empty{}, err
	}
	if p.Items == nil {
		return empty{}, mcp.Invalid("/items", "missing")
	}
	ss.submit(ctx, t, protocol.TurnInput{Items: p.Items})
	return empty{}, nil
}

// attendance returns the attendance for turns that the methods start. The events go to the
// listeners of the thread.
func (ss *session) attendance() thread.Attend {
	caller := &thread.Caller{Client: ss.client.Host(), Folders: ss.client.Folders, FullAccess: ss.server.FullAccess}
	return thread.Attend{Caller: caller, Observers: []thread.Observer{ss.client.Outlet()}, Ask: ss.client.PlaceOf(ss.ask), Elicit: ss.client.Elicit}
}

// submit queues a turn. Only the end of the session waits for it.
func (ss *session) submit(ctx context.Context, t *thread.Thread, in protocol.TurnInput) {
	a := ss.attendance()
	a.Observer = thread.ObserverOf(ctx)
	turn := ss.server.Tools.Begin(t, a, in)
	ss.client.Session().Go(func() {
		if err := turn.Run(ss.client.Session().Context()); err != nil {
			ss.client.Session().Log().Debug("turn", "thread", t.ID(), "error", err)
		}
	})
}

// interruptConversation interrupts the running or first queued turn at once, on the read
// loop. It answers when the turn has ended.
func (ss *session) interruptConversation(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p protocol.InterruptConversationParams
	if err := r.Bind(&p); err != nil {
		return nil, err
	}
	t, err := ss.find(p.ConversationID)
	if err != nil {
		return nil, err
	}
	ended := t.Stop(thread.ErrInterrupted)
	if ended == nil {
		return nil, refused("no turn of conversation %s is running", p.ConversationID)
	}
	reply := r.Responder()
	ss.client.Session().Go(func() {
		select {
		case <-ended:
			err = reply.Reply(&protocol.InterruptConversationResult{AbortReason: protocol.AbortInterrupted}, nil)
		case <-ctx.Done():
			err = reply.Reply(nil, context.Cause(ctx))
		}
		if err != nil {
			ss.client.Session().Log().Debug("interrupt", "error", err)
		}
	})
	return nil, nil
}
