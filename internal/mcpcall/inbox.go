package mcpcall

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxUnread bounds the notifications that wait for a call's function, in bytes, unless a message may
// be longer.
const maxUnread = 64 << 20

var errUnread = errors.New("the client does not handle the server's notifications fast enough")

// inbox keeps the notifications of one call in order. The read loop fills it, the goroutine of
// the call empties it.
type inbox struct {
	news chan struct{} // has an element if there is something new
	most int           // how many bytes may wait
	over chan struct{} // closed when the call has ended

	mu     sync.Mutex
	notes  []notification
	unread int // bytes
}

// notification is one of the server, or a mark between them.
type notification struct {
	method  string
	params  json.RawMessage
	reached chan struct{} // of a mark: closed when the call has handled what was before it
}

func newInbox(maxMessage int) *inbox {
	return &inbox{news: make(chan struct{}, 1), most: max(maxUnread, maxMessage), over: make(chan struct{})}
}

// put adds a notification. Beyond the limit it is lost, and take fails.
func (b *inbox) put(n notification) {
	b.mu.Lock()
	if b.unread <= b.most {
		if b.unread += len(n.params); b.unread <= b.most {
			b.notes = append(b.notes, n)
		}
	}
	b.mu.Unlock()
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// take removes and returns the notifications.
func (b *inbox) take() ([]notification, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unread > b.most {
		return nil, errUnread
	}
	notes := b.notes
	b.notes, b.unread = nil, 0
	return notes, nil
}

// settle waits until the call has handled what has arrived, or has ended, or ctx ends.
func (b *inbox) settle(ctx context.Context) {
	mark := notification{reached: make(chan struct{})}
	b.put(mark)
	select {
	case <-mark.reached:
	case <-b.over:
	case <-ctx.Done():
	}
}

// taskNotes is the beginning of the names of the inboxes for notifications about tasks.
const taskNotes = "task "

// listen passes the notifications of a name to an inbox, until deaf is called. None is handled
// before name returns.
func (s *Session) listen(box *inbox, name func() string) (deaf func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := name()
	s.open[own] = box
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, own)
	}
}

// notified passes a notification to the call that it names: by the id of its request, or by the task.
func (s *Session) notified(r *jsonrpc.Request) {
	if r.Method == mcptypes.NotificationsToolsListChanged.Name() {
		if s.o.ToolsChanged != nil {
			s.o.ToolsChanged()
		}
		return
	}
	var p struct {
		Meta struct {
			RequestID jsontext.Value `json:"requestId"`
		} `json:"_meta"`
		TaskID string `json:"taskId"`
	}
	if jsonv2.Unmarshal(r.Params, &p) != nil {
		return
	}
	name := string(p.Meta.RequestID)
	if r.Method == modern.NotificationsTasks.Name() {
		name = taskNotes + p.TaskID
	}
	s.mu.Lock()
	box := s.open[name]
	s.mu.Unlock()
	if box != nil {
		box.put(notification{method: r.Method, params: slices.Clone(r.Params)})
	}
}
