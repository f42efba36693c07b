package terminal

import "sync"

// inbox holds the peer's messages until the screen's goroutine takes them. Use newInbox.
type inbox struct {
	news chan struct{} // holds one value when there may be a new message

	mu   sync.Mutex
	list []any
}

func newInbox() *inbox { return &inbox{news: make(chan struct{}, 1)} }

// put adds a message. It never blocks.
func (b *inbox) put(m any) {
	b.mu.Lock()
	b.list = append(b.list, m)
	b.mu.Unlock()
	select {
	case b.news <- struct{}{}:
	default:
	}
}

// take returns the oldest message, nil when there is none.
func (b *inbox) take() any {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.list) == 0 {
		return nil
	}
	m := b.list[0]
	b.list[0] = nil
	b.list = b.list[1:]
	return m
}
