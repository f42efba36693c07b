package mcpcall

import (
	"context"
	"encoding/json"
	"errors"
	"math"
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

	mu      sync.Mutex
	notes   []notification
	unread  int           // bytes
	got     int           // how many notifications have arrived
	handled int           // how many the call has handled
	changed chan struct{} // closed when handled changes
}

type notification struct {
	method string
	params json.RawMessage
}

func newInbox(maxMessage int) *inbox {
	return &inbox{news: make(chan struct{}, 1), most: max(maxUnread, maxMessage), changed: make(chan struct{})}
}

// put adds a notification. Beyond the limit it is lost, and take fails.
func (b *inbox) put(n notification) {
	b.mu.Lock()
	b.got++
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

// done notes that the call has handled n notifications, or all with a negative n.
func (b *inbox) done(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handled += n; n < 0 {
		b.handled = math.MaxInt
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

// settle waits until the call has handled what has arrived, or ctx ends.
func (b *inbox) settle(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for got := b.got; b.handled < got && ctx.Err() == nil; {
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		b.mu.Lock()
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

// notified passes a notification to the call that it names: by the id of its request, by the
// progress token, or by the task.
func (s *Session) notified(r *jsonrpc.Request) {
	var p struct {
		Meta struct {
			RequestID jsontext.Value `json:"requestId"`
		} `json:"_meta"`
		ProgressToken jsontext.Value `json:"progressToken"`
		TaskID        string         `json:"taskId"`
	}
	if jsonv2.Unmarshal(r.Params, &p) != nil {
		return
	}
	name := string(p.Meta.RequestID)
	switch r.Method {
	case mcptypes.NotificationsProgress.Name():
		text, err := jsontext.AppendUnquote(nil, p.ProgressToken)
		if err != nil { // tokens of this package are strings
			return
		}
		name = string(text)
	case modern.NotificationsTasks.Name():
		name = taskNotes + p.TaskID
	}
	s.mu.Lock()
	box := s.open[name]
	s.mu.Unlock()
	if box != nil {
		box.put(notification{r.Method, slices.Clone(r.Params)})
	}
}
