package mcphttp

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// stream holds the messages to a client that belong to one of its requests, or to none. The
// session keeps events for a while after they are written, so that a client can resume the
// stream after its connection broke. The session's mutex guards all fields.
type stream struct {
	session *session
	number  int
	open    int     // requests without an answer: several of a batch; 0 for the stream of a GET
	last    int     // the number of the newest event
	lost    int     // the number of the newest event that the session no longer keeps
	done    bool    // no event follows
	reader  *reader // the response that reads the stream; nil for none
}

// event is one message to a client.
type event struct {
	stream *stream
	number int // 1 for the first of a stream
	data   []byte
	answer bool // the answer to the request, which is the last event
}

// reader is an HTTP response that reads a stream.
type reader struct {
	read int // the last event that was written to the response
}

// primedSince is the version of MCP in which a stream begins with an empty event.
const primedSince = "2025-11-25"

// overhead is the memory that an event takes in addition to its data, in bytes.
const overhead = 256

// maxUnread is how many bytes may wait for the reader of a stream.
const maxUnread = 1 << 20

// unread returns the number of bytes that the reader has not written, 0 without a reader.
func (st *stream) unread() (n int) {
	if st.reader != nil {
		for _, e := range st.after(st.reader.read) {
			n += len(e.data)
		}
	}
	return n
}

// eventID returns the id of an event, as in Last-Event-ID.
func eventID(stream, number int) string { return strconv.Itoa(stream) + "-" + strconv.Itoa(number) }

// id returns the id of the event, "" for that of an exchange, which no client can resume.
func (e *event) id() string {
	if e.stream.session.only != nil {
		return ""
	}
	return eventID(e.stream.number, e.number)
}

// parseEventID is the reverse of [eventID].
func parseEventID(id string) (stream, number int, ok bool) {
	a, b, _ := strings.Cut(id, "-")
	stream, _ = strconv.Atoi(a)
	number, _ = strconv.Atoi(b)
	return stream, number, number >= 0 && eventID(stream, number) == id // not "+1-01"
}

// add adds an event. If the session then keeps too many bytes, its oldest events are
// dropped, but none that a reader is about to write.
func (st *stream) add(m []byte, answer bool) {
	s := st.session
	st.last++
	s.out.kept = append(s.out.kept, &event{stream: st, number: st.last, data: m, answer: answer})
	s.out.keptBytes += len(m) + overhead
	s.trim()
	s.change()
}

// trim drops the oldest events while the session keeps too many bytes, but none that a reader is about to write.
func (s *session) trim() {
	most := s.handler.o.MaxRetained
	if s.only != nil {
		most = 0 // no client can resume it
	}
	for s.out.keptBytes > most && len(s.out.kept) > 1 {
		old := s.out.kept[0]
		if r := old.stream.reader; r != nil && r.read < old.number {
			break
		}
		s.out.kept[0] = nil
		s.out.kept = s.out.kept[1:]
		s.out.keptBytes -= len(old.data) + overhead
		old.stream.lost = old.number
		old.stream.forget()
	}
}

// forget removes an answered stream of which no event is kept.
func (st *stream) forget() {
	if st.done && st.lost == st.last {
		delete(st.session.out.of, st.number)
	}
}

// answered records that a request of the stream has its answer, or gets none. The stream is
// done with the last.
func (st *stream) answered(id jsonrpc.ID) {
	if one := st.session.requests[id]; one == nil || one.stream != st {
		return
	}
	delete(st.session.requests, id)
	if st.open--; st.open > 0 {
		return
	}
	st.done = true
	st.forget()
	st.session.change()
}

// forsake records that none of the messages gets an answer on the stream.
func (st *stream) forsake(messages []message) {
	for _, m := range messages {
		st.answered(m.id)
	}
}

// after returns the kept events with a higher number. They are the last ones of the session, unless a client resumes.
func (st *stream) after(number int) (events []*event) {
	for _, e := range slices.Backward(st.session.out.kept) {
		if len(events) == st.last-number {
			break
		}
		if e.stream == st {
			events = append(events, e)
		}
	}
	slices.Reverse(events)
	return events
}

// prime returns the id of the last event that the reader has. The response starts with an
// empty event of this id, so that a client can resume the stream before it has received a
// message. prime returns "" before MCP 2025-11-25, whose clients do not expect that event.
func (st *stream) prime(me *reader) string {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version < primedSince {
		return ""
	}
	return eventID(st.number, me.read)
}

// serve writes the events of the stream to a response until the stream is done, the client
// has gone or another response reads the stream. me is the attached reader. begun reports
// that the response must be a stream; otherwise a lone answer is sent as JSON.
func (st *stream) serve(w http.ResponseWriter, r *http.Request, me *reader, begun bool) {
	s := st.session
	out := &writer{
		ResponseWriter: w, control: http.NewResponseController(w), timeout: s.handler.o.WriteTimeout,
		first: func() string { return st.prime(me) },
	}
	defer s.detach(st, me)
	if begun && (out.begin() != nil || out.flush() != nil) {
		return
	}
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		s.mu.Lock()
		events, done, ended, replaced := st.after(me.read), st.done, s.ended, st.reader != me
		var changed <-chan struct{}
		if len(events) == 0 && !done && !ended {
			changed = s.changes()
		}
		s.mu.Unlock()
		if replaced {
			return
		}
		if ended && len(events) == 0 {
			switch {
			case out.begun:
			case s.only != nil:
				refuse(w, http.StatusServiceUnavailable, "the server is shutting down")
			default:
				fail(w, http.StatusNotFound, jsonrpc.ID{}, errEnded)
			}
			return
		}
		if !out.begun && len(events) == 1 && events[0].answer && events[0].number == 1 {
			s.mu.Lock()
			s.drop(st)
			s.mu.Unlock()
			status := http.StatusOK
			if s.only != nil {
				status = statusOf(events[0].data)
			}
			_ = out.json(status, events[0].data) // a client that has gone reads nothing
			return
		}
		for _, e := range events {
			if out.event(e.id(), e.data) != nil {
				return
			}
		}
		if len(events) > 0 {
			if !done && out.flush() != nil { // the end of the response flushes, too
				return
			}
			s.mu.Lock()
			me.read = events[len(events)-1].number
			s.change()
			s.mu.Unlock()
			continue // events may have been added meanwhile
		}
		if done {
			if !out.begun { // the request was cancelled
				w.WriteHeader(http.StatusAccepted)
			}
			return
		}
		select {
		case <-changed:
		case <-ticker.C:
			if out.beat() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

var errEnded = &jsonrpc.Error{
	Code:    jsonrpc.CodeInvalidRequest,
	Message: "no such session: it has ended or never existed; begin a new one with initialize",
}

// room waits until the stream has room for an event. s.mu is held, except while it waits.
func (st *stream) room(ctx context.Context) error {
	s := st.session
	for st.unread() > maxUnread {
		if err := s.wait(ctx, s.closing); err != nil {
			return err
		}
	}
	return nil
}
