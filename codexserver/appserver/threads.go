package appserver

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
)

// threads are those that an app-server has in memory, by their ids. The child's lock guards them.
type threads struct {
	loaded map[string]*thread // of conversations
	agents map[string]subAgent
}

// subAgent is a thread that a conversation's thread started by itself.
type subAgent struct {
	root *thread
	path string // such as /root/worker, or the id of its thread
}

// root returns the thread of the conversation that a thread belongs to. If the thread is a
// sub-agent's, it also returns the sub-agent's path. It returns nil for an unknown thread.
func (l *threads) root(id string) (*thread, string) {
	if t := l.loaded[id]; t != nil {
		return t, ""
	}
	a := l.agents[id]
	return a.root, a.path
}

// load returns the thread of a conversation, also if it was a sub-agent's before.
func (l *threads) load(id string, c *child) *thread {
	t := l.loaded[id]
	if t == nil {
		t = &thread{id: id, child: c, turns: make(chan struct{}, 1)}
		l.loaded[id] = t
		delete(l.agents, id)
	}
	return t
}

// adopt records the thread of a sub-agent, unless it is known.
func (l *threads) adopt(root *thread, id, path string) {
	if known, _ := l.root(id); id != "" && known == nil {
		l.agents[id] = subAgent{root: root, path: cmp.Or(path, id)}
	}
}

// forget drops the thread of a conversation and its sub-agents.
func (l *threads) forget(id string) {
	t := l.loaded[id]
	if t == nil {
		return
	}
	delete(l.loaded, id)
	maps.DeleteFunc(l.agents, func(_ string, a subAgent) bool { return a.root == t })
}

// adopt records the threads of sub-agents that the notification announces. With the tools of
// many models, also of the newest Codex, that is the result of the tool that starts them.
func (c *child) adopt(root *thread, method string, n *apptypes.Note) {
	if method != apptypes.NoteItemStarted && method != apptypes.NoteItemCompleted || n.Item == nil {
		return
	}
	var found []string
	path := ""
	switch typeOf(n.Item) {
	case apptypes.ThreadItemSubAgentActivity:
		if it, err := appclient.ReadItem(n.Item); err == nil {
			found, path = []string{it.AgentThreadID}, it.AgentPath
		}
	case itemCollab:
		var it collab
		if json.Unmarshal(n.Item, &it) == nil && it.SenderThreadID == n.ThreadID {
			found = it.ReceiverThreadIDs
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range found {
		c.threads.adopt(root, id, path)
	}
}

// root returns the thread of the conversation that a thread belongs to, as [threads.root] does.
func (c *child) root(threadID string) (*thread, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.threads.root(threadID)
}

// load registers a thread that this child has loaded, and whose turns have rules.
func (c *child) load(id string, rules box.Grant) *thread {
	c.mu.Lock()
	t := c.threads.load(id, c)
	c.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules = rules
	return t
}

// turnsOf returns the turns of a thread, the last one first. An error is the last value.
func (c *child) turnsOf(ctx context.Context, id string) iter.Seq2[*apptypes.Turn, error] {
	return func(yield func(*apptypes.Turn, error) bool) {
		params := apptypes.TurnsParams{ThreadID: id, SortDirection: apptypes.SortDirectionDesc, Limit: 50}
		for {
			var page apptypes.TurnsReply
			if err := c.call(ctx, controlLimit, apptypes.CallThreadTurnsList, params, &page); err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Data {
				if !yield(&page.Data[i], nil) {
					return
				}
			}
			if page.NextCursor == "" || len(page.Data) == 0 {
				return
			}
			params.Cursor = page.NextCursor
		}
	}
}

// find returns the thread of a conversation, or nil.
func (c *child) find(id string) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.threads.loaded[id]
}

// forget drops the thread of a conversation and its sub-agents.
func (c *child) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.threads.forget(id)
}
