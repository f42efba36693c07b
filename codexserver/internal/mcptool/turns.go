package mcptool

import (
	"fmt"
	"sync"
)

// turns counts the turns that run or are queued. Max 0 means no limit.
type turns struct {
	max int

	mu sync.Mutex
	n  int
}

// enter counts a new turn. The caller must call leave when it has ended. enter fails if
// there are max turns.
func (t *turns) enter() (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.max > 0 && t.n >= t.max {
		return nil, fmt.Errorf("%d turns are under way, and no more may be (limits.turns): wait for the end of one, or stop one with codex-interrupt", t.n)
	}
	t.n++
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.n--
	}), nil
}
