package mcp

import (
	"context"
	"encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
)

func (ss *LegacySession) listTools(context.Context, *mcptypes.ListToolsRequestParams) (*mcptypes.ListToolsResult, error) {
	list, err := ss.server.Tools.List()
	if err != nil {
		return nil, err
	}
	for i := range list {
		if !ss.speaks("2025-06-18") {
			list[i].Title, list[i].OutputSchema = nil, nil
		}
		if !ss.speaks("2025-03-26") {
			list[i].Annotations = nil
		}
	}
	return &mcptypes.ListToolsResult{Tools: list}, nil
}

func (ss *LegacySession) callTool(ctx context.Context, r *jsonrpc.Request) (any, error) {
	var p mcptypes.CallToolRequestParams
	if err := r.Bind(&p); err != nil {
		return nil, err
	}
	leave, err := ss.limit.enterTool(p.Name)
	if err != nil {
		return nil, err
	}
	defer leave()
	w := &legacyWatcher{remarks: remarks{ss}, request: r.ID, progress: ss.newProgress(ctx, p.Meta)}
	defer w.progress.end()
	id := callID(r.ID)
	observer := thread.ObserverOf(ctx)
	c := &mcptool.Call{
		ID:         id,
		Threads:    ss.threads,
		Jobs:       ss.jobs,
		Attendance: thread.Attendance{Watcher: w, Observer: observer, Awaited: true, Place: ss.place(id), Elicit: ss.elicit},
		Background: thread.Attendance{Watcher: remarks{ss}, Observer: observer, Place: ss.place(id), Elicit: ss.elicit},
		Asks:       ss.canAsk(),
		Folder:     ss.folder,
		OpenOnly:   ss.principal != "",
		Begun:      w.progress.begin,
	}
	if ss.principal == ss.server.Approver && ss.canAsk() {
		c.Relay, c.Taker = ss.server.Relay, legacyClient{ss, id}
	}
	result := ss.server.Tools.Call(ctx, c, p.Name, p.Arguments)
	w.Ready(ctx, nil) // before the result, since the events already have the answer twice
	if ctx.Err() == nil {
		c.Answered()
	}
	return encodeResult(result)
}

// encodeResult encodes a result into a buffer of about its size. The answer may be long,
// and the peer's encoder would keep several copies of it while it validates the JSON.
func encodeResult(r *mcptypes.CallToolResult) (json.RawMessage, error) {
	size := len(r.StructuredContent) + 1<<10
	for _, text := range mcptool.Texts(r) {
		size += len(text) + len(text)/16 // room for escapes
	}
	return mcptypes.AppendJSON(make([]byte, 0, size), r)
}

// watcher sends the events of a turn to its caller, as codex/event with the id of the
// request, and as progress.
type legacyWatcher struct {
	remarks
	request  jsonrpc.ID
	progress *progress
	failed   bool // the turn's error event was sent
	gap      Gap
}

// Event implements [thread.Watcher].
func (w *legacyWatcher) Event(thread string, e protocol.Event) {
	switch m := e.Msg.(type) {
	case protocol.SessionConfigured:
		m.InitialMessages = nil // a caller of a tool does not need the history
		e.Msg = m
	case protocol.Error:
		w.failed = true
	case protocol.TaskComplete:
		if w.failed {
			return // the error event has ended the turn
		}
	}
	w.gap.Send(w.session.peer, w.session.server.MaxUnread, e, func(e protocol.Event) { w.session.sendToolEvent(w.request, thread, e) })
	w.progress.event(e.Msg)
}
