package slots

import (
	"fmt"
	"sync"
)

// Limit bounds how many are under way for each key, such as a principal. One more fails instead of waiting. Nil bounds
// nothing. It is safe for concurrent use.
type Limit struct {
	most  int
	words string

	mu  sync.Mutex
	now map[string]int // without zeros
}

// NewLimit returns a limit. Words are the error of one more, with %d for the most that there may be.
func NewLimit(most int, words string) *Limit {
	return &Limit{most: most, words: words, now: map[string]int{}}
}

// Enter counts one more, and fails if there are too many. The caller must call leave; twice does no harm.
func (l *Limit) Enter(key string) (leave func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now[key] >= l.most {
		return nil, fmt.Errorf(l.words, l.most)
	}
	l.now[key]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.now[key]--; l.now[key] == 0 {
			delete(l.now, key)
		}
	}), nil
}

// Busy reports whether any are under way.
func (l *Limit) Busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.now) > 0
}
