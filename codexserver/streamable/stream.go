package streamable

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// stream is what goes out to a client for one of its requests, or for none. Its
// events are kept for a while, so that a client whose connection broke takes it up
// again. The session's mutex guards it.
type stream struct {
	session *session
	number  int
	request *envelope       // nil for what belongs to no request
	came    context.Context // of the POST with the request
	events  []*event        // kept, oldest first
	next    int             // the number of the next event
	lost    int             // the number of the newest event that is not kept any more
	done    bool            // nothing more comes
	reader  *reader         // who reads it now, if anybody
}

// event is one message to a client.
type event struct {
	stream *stream
	number int
	data   []byte
	last   bool // the answer
}

// reader is one response that reads a stream.
type reader struct {
	read     int           // the number of the last event that it has written
	replaced chan struct{} // closed when another response reads the stream
}

// primedSince is the version of MCP in which a stream begins with an empty event.
const primedSince = "2025-11-25"

// overhead is what an event costs beside its bytes.
const overhead = 256

// maxUnread is how many bytes of a stream may wait for its reader.
const maxUnread = 1 << 20

// unread are the bytes that the stream's reader has not written.
func (st *stream) unread() (n int) {
	if st.reader == nil {
		return 0
	}
	for _, e := range st.events {
		if e.number > st.reader.read {
			n += len(e.data)
		}
	}
	return n
}

// eventID names an event for Last-Event-ID.
func eventID(stream, number int) string { return strconv.Itoa(stream) + "-" + strconv.Itoa(number) }

func (e *event) id() string { return eventID(e.stream.number, e.number) }

// parseEventID is the reverse of [eventID].
func parseEventID(id string) (stream, number int, ok bool) {
	a, b, found := strings.Cut(id, "-")
	stream, err1 := strconv.Atoi(a)
	number, err2 := strconv.Atoi(b)
	return stream, number, found && err1 == nil && err2 == nil && stream >= 0 && number >= 0
}

// add adds an event, and drops the oldest of the session where there are too many.
func (st *stream) add(m []byte, last bool) {
	s := st.session
	st.next++
	e := &event{stream: st, number: st.next, data: m, last: last}
	st.events = append(st.events, e)
	s.kept = append(s.kept, e)
	s.retained += len(m) + overhead
	for s.retained > s.handler.o.MaxRetained && len(s.kept) > 1 {
		old := s.kept[0]
		if r := old.stream.reader; r != nil && r.read < old.number {
			break // it is about to be written
		}
		s.kept[0] = nil
		s.kept = s.kept[1:]
		s.retained -= len(old.data) + overhead
		old.stream.forget(old)
	}
	s.change()
}

// forget drops the oldest event of the stream.
func (st *stream) forget(old *event) {
	st.events[0] = nil
	st.events = st.events[1:]
	st.lost = old.number
	if st.done && len(st.events) == 0 {
		remove(&st.session.streams, st.number)
	}
}

// end notes that nothing more comes.
func (st *stream) end() {
	st.done = true
	if st.session.requests[st.request.id] == st {
		remove(&st.session.requests, st.request.id)
	}
	if len(st.events) == 0 {
		remove(&st.session.streams, st.number)
	}
	st.session.change()
}

// after returns the events behind a number.
func (st *stream) after(number int) []*event {
	for i, e := range st.events {
		if e.number > number {
			return st.events[i:len(st.events):len(st.events)]
		}
	}
	return nil
}

// prime returns the id of what the reader has, for the empty event that its response
// begins with; "" before MCP 2025-11-25, where clients do not expect one.
func (st *stream) prime(me *reader) string {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version < primedSince {
		return ""
	}
	return eventID(st.number, me.read)
}

// serve writes the stream to a response, from the event behind read on, until nothing
// more comes or the client goes. The reader is attached already.
func (st *stream) serve(w http.ResponseWriter, r *http.Request, me *reader, begun bool) {
	s := st.session
	out := newWriter(w, s.handler.o.WriteTimeout)
	defer s.detach(st, me)
	begin := func() error {
		begun = true
		return out.stream(st.prime(me))
	}
	if begun && begin() != nil {
		return
	}
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		s.mu.Lock()
		events, done, ended := st.after(me.read), st.done, s.ended
		var changed <-chan struct{}
		if len(events) == 0 && !done && !ended {
			changed = s.changes()
		}
		s.mu.Unlock()
		if ended && len(events) == 0 {
			if !begun {
				fail(w, http.StatusNotFound, jsonrpc.ID{}, errEnded)
			}
			return
		}
		if !begun && len(events) == 1 && events[0].last && events[0].number == 1 {
			s.mu.Lock()
			s.drop(st)
			s.mu.Unlock()
			_ = out.json(http.StatusOK, events[0].data) // a client that has gone reads nothing
			return
		}
		if len(events) > 0 && !begun && begin() != nil {
			return
		}
		for _, e := range events {
			if out.event(e.id(), e.data) != nil {
				return
			}
		}
		if len(events) > 0 {
			if out.flush() != nil {
				return
			}
			s.mu.Lock()
			me.read = events[len(events)-1].number
			s.change()
			s.mu.Unlock()
			continue // what has come meanwhile
		}
		if done {
			if !begun { // the request was cancelled
				w.WriteHeader(http.StatusAccepted)
			}
			return
		}
		select {
		case <-changed:
		case <-ticker.C:
			if !begun && begin() != nil || out.beat() != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-me.replaced:
			return
		}
	}
}

var errEnded = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "no such session: it has ended, or never was; begin a new one with initialize")

// room waits until the stream's reader has caught up. s.mu is held, but not while it
// waits.
func (st *stream) room(ctx context.Context) error {
	s := st.session
	for st.unread() > maxUnread {
		if s.closing {
			return errSessionClosed
		}
		if err := s.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
