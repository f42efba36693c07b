package tools

import (
	"fmt"
	"sync"
)

// turns has an element for each turn that runs or is queued. Nil has no limit.
type turns chan struct{}

// enter counts a new turn. The caller must call leave when it has ended. enter fails if
// there are as many as there may be.
func (t turns) enter() (leave func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	select {
	case t <- struct{}{}:
		return sync.OnceFunc(func() { <-t }), nil
	default:
		return nil, fmt.Errorf("%d turns are under way, and no more may be (limits.turns): wait for the end of one, or stop one with codex-interrupt", cap(t))
	}
}
