package terminal

import "sync"

// inbox holds the peer's messages until the screen's goroutine takes them. Use newInbox.
type inbox struct {
	news chan struct{} // holds one value while there are messages

	mu   sync.Mutex
	list []any
}

func newInbox() *inbox { return &inbox{news: make(chan struct{}, 1)} }

// put adds a message. It never blocks.
func (b *inbox) put(m any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.list = append(b.list, m); len(b.list) == 1 {
		b.news <- struct{}{}
	}
}

// take returns the oldest message, for one value of news.
func (b *inbox) take() any {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.list[0]
	b.list[0] = nil
	if b.list = b.list[1:]; len(b.list) > 0 {
		b.news <- struct{}{}
	}
	return m
}

// waiting returns the questions among the messages that still wait for an answer.
func (b *inbox) waiting() []*question {
	b.mu.Lock()
	defer b.mu.Unlock()
	var open []*question
	for _, m := range b.list {
		if q, ok := m.(*question); ok && q.ctx.Err() == nil {
			open = append(open, q)
		}
	}
	return open
}
