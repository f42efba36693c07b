package thread

import (
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// backlogLimit is how many events are kept for the first listener.
const backlogLimit = 4096

// Listener receives every event of a thread from the moment it listens. It must not
// block.
type Listener func(protocol.Event)

// listeners are the subscriptions to one thread, by id. Events of turns that no call waits
// for are kept for the first listener. The zero value is ready. host.mu guards it.
type listeners struct {
	byID    map[string]Listener
	backlog []protocol.Event
}

// event sends an event. Awaited is true if a call waits for the turn.
func (l *listeners) event(e Event, awaited bool) {
	if _, first := e.Msg.(protocol.SessionConfigured); first || !e.Sent() {
		return // listeners come later
	}
	for _, listen := range l.byID {
		listen(e.Event)
	}
	if len(l.byID) > 0 || awaited {
		return
	}
	if len(l.backlog) == backlogLimit {
		l.backlog = slices.Delete(l.backlog, 0, backlogLimit/2)
	}
	l.backlog = append(l.backlog, e.Event)
}

// add adds a listener and sends it the events that were kept.
func (l *listeners) add(id string, listen Listener) {
	if l.byID == nil {
		l.byID = map[string]Listener{}
	}
	l.byID[id] = listen
	for _, e := range l.backlog {
		listen(e)
	}
	l.backlog = nil
}

// remove removes a listener and reports whether it existed.
func (l *listeners) remove(id string) bool {
	_, ok := l.byID[id]
	delete(l.byID, id)
	return ok
}
