package page

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	// heartbeat is how often a silent stream sends an empty line.
	heartbeat = 15 * time.Second
	// pulse is how often a stream sends the conversations whose turns run: what they do, and what their commands print.
	pulse = time.Second
	// pace is the least time between two lines.
	pace = 100 * time.Millisecond
	// slow is how long writing 64 KiB may take.
	slow = 10 * time.Second
	// maxStreams leaves a browser connections for the answers: it has six to a host.
	maxStreams = 4
)

// work is what a page does: the requests that it answers, with the streams among them. The zero
// value does nothing yet.
type work struct {
	mu       sync.Mutex
	closed   bool
	handlers sync.WaitGroup // not added to once closed
	streams  []stream       // oldest first
}

// stream is closed when a newer stream replaces it.
type stream chan struct{}

// enter counts a handler, which must call leave. It returns false once the page is closed.
func (w *work) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.handlers.Add(1)
	return true
}

func (w *work) leave() { w.handlers.Done() }

// close lets no more handlers begin. It reports whether this is the first close.
func (w *work) close() (first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, w.closed = !w.closed, true
	return first
}

// watched reports whether there is a stream.
func (w *work) watched() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.streams) > 0
}

// add adds a stream. If there are too many, it takes the place of the oldest.
func (w *work) add() stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.streams) == maxStreams {
		close(w.streams[0])
		w.streams = slices.Delete(w.streams, 0, 1)
	}
	me := make(stream)
	w.streams = append(w.streams, me)
	return me
}

func (w *work) remove(me stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams = slices.DeleteFunc(w.streams, func(other stream) bool { return other == me })
}

// stream writes what the board shows, one JSON object a line: first everything, then the
// changes. An empty line is a heartbeat. The last line is {"end":…} if the server ends
// the stream.
func (p *Page) stream(w http.ResponseWriter, r *http.Request, who *session) {
	me := p.work.add()
	defer p.work.remove(me)
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Accel-Buffering", "no") // for nginx, which would keep the lines to itself
	send := func(v any) bool {
		var line []byte
		if v != nil {
			var err error
			if line, err = json.Marshal(v); err != nil {
				return false
			}
		}
		for piece := range slices.Chunk(append(line, '\n'), 64<<10) {
			_ = control.SetWriteDeadline(time.Now().Add(slow))
			if _, err := w.Write(piece); err != nil {
				return false
			}
		}
		return control.Flush() == nil
	}
	end := func(why string) { send(map[string]string{"end": why}) }
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	var seen uint64
	pulsed := false
	for {
		news, next, changed := p.board.since(seen, pulsed)
		pulsed = false
		if next > seen || len(news.Conversations) > 0 {
			if !send(news) {
				return
			}
			seen = next
			select {
			case <-time.After(pace):
			case <-p.done:
			}
		}
		select {
		case <-changed:
		case <-tick.C:
			pulsed = true
		case <-beat.C:
			if p.door.session(who.token) == nil || !send(nil) {
				return
			}
		case <-who.ended:
			end("session")
			return
		case <-me:
			end("replaced")
			return
		case <-r.Context().Done():
			return
		case <-p.done:
			end("closed")
			return
		}
	}
}
