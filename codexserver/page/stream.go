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
	// pace is the least time between two lines.
	pace = 50 * time.Millisecond
	// slow is how long writing 64 KiB may take.
	slow = 10 * time.Second
	// maxStreams leaves a browser connections for the answers: it has six to a host.
	maxStreams = 4
)

// streams are the open pages. The zero value has none.
type streams struct {
	mu   sync.Mutex
	list []*stream // oldest first
}

type stream struct {
	replaced chan struct{} // closed when a newer stream replaces it
}

func (s *streams) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list)
}

func (s *streams) add() *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == maxStreams {
		close(s.list[0].replaced)
		s.list = slices.Delete(s.list, 0, 1)
	}
	me := &stream{replaced: make(chan struct{})}
	s.list = append(s.list, me)
	return me
}

func (s *streams) remove(me *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(other *stream) bool { return other == me })
}

// stream writes what the board shows, one JSON object a line: first everything, then the
// changes. An empty line is a heartbeat. The last line is {"end":…} if the server ends
// the stream.
func (p *Page) stream(w http.ResponseWriter, r *http.Request, who *session) {
	me := p.streams.add()
	defer p.streams.remove(me)
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
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
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	var seen uint64
	for {
		news, next, changed := p.board.since(seen)
		if next > seen || seen == 0 {
			if !send(news) {
				return
			}
			seen = max(next, 1)
		}
		paced := time.After(pace)
		for waiting := true; waiting; {
			select {
			case <-changed:
				changed, waiting = nil, false
			case <-beat.C:
				if p.door.session(who.token) == nil || !send(nil) {
					return
				}
			case <-who.ended:
				send(map[string]string{"end": "session"})
				return
			case <-me.replaced:
				send(map[string]string{"end": "replaced"})
				return
			case <-r.Context().Done():
				return
			case <-p.done:
				return
			}
		}
		select {
		case <-paced:
		case <-r.Context().Done():
			return
		case <-p.done:
			return
		}
	}
}
