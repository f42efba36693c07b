package tool

import "sync"

// Activity counts the commands and patches of all conversations of a server. The zero
// value is ready. It is safe for concurrent use.
type Activity struct {
	mu             sync.Mutex
	begun, running int
}

// Begin counts a command or patch until end is called.
func (a *Activity) Begin() (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.begun++
	a.running++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.running--
	}
}

// state returns how many have begun, and whether none is running.
func (a *Activity) state() (begun int, idle bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.begun, a.running == 0
}
