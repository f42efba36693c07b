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

// listeners are the subscriptions to one thread. Thread.mu guards it.
type listeners struct {
	all     map[*Listener]bool
	keeps   bool // events for the first listener, and the thread open however long nobody uses it
	backlog []protocol.Event
}

// event sends an event.
func (l *listeners) event(e Event) {
	if _, first := e.Msg.(protocol.SessionConfigured); first || !e.Sent() {
		return // listeners come later
	}
	for listen := range l.all {
		(*listen)(e.Event)
	}
	if len(l.all) > 0 || !l.keeps {
		return
	}
	if len(l.backlog) == backlogLimit {
		l.backlog = slices.Delete(l.backlog, 0, backlogLimit/2)
	}
	l.backlog = append(l.backlog, e.Event)
}

// add adds a listener and sends it the events that were kept.
func (l *listeners) add(listen *Listener) {
	l.all[listen] = true
	for _, e := range l.backlog {
		(*listen)(e)
	}
	l.backlog = nil
}
