package codexserver

import (
	"maps"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/uuid"
)

// backlogLimit bounds the events that wait for a first listener.
const backlogLimit = 4096

// listeners are the subscriptions to one conversation. Each gets every event
// as codex/event/<type>. Events of turns that nobody waits for are kept for
// the first listener. The zero value is ready; host.mu guards it.
type listeners struct {
	ids     map[string]bool
	backlog []protocol.Event
}

func (l *listeners) event(h *host, e protocol.Event) {
	for range l.ids {
		h.session.sendListenerEvent(h.configured.SessionID, e)
	}
	if _, awaited := h.asker.(*call); len(l.ids) == 0 && !awaited {
		if len(l.backlog) == backlogLimit {
			l.backlog = slices.Delete(l.backlog, 0, backlogLimit/2)
		}
		l.backlog = append(l.backlog, e)
	}
}

// listen adds a subscription and gives it what was kept.
func (h *host) listen() (string, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners.ids == nil {
		h.listeners.ids = map[string]bool{}
	}
	h.listeners.ids[id.String()] = true
	for _, e := range h.listeners.backlog {
		h.session.sendListenerEvent(h.configured.SessionID, e)
	}
	h.listeners.backlog = nil
	return id.String(), nil
}

// unlisten ends a subscription; false when there is none by that id.
func (cs *conversations) unlisten(id string) bool {
	cs.mu.Lock()
	all := slices.Collect(maps.Values(cs.byID))
	cs.mu.Unlock()
	for _, c := range all {
		c.host.mu.Lock()
		found := c.host.listeners.ids[id]
		delete(c.host.listeners.ids, id)
		c.host.mu.Unlock()
		if found {
			return true
		}
	}
	return false
}
