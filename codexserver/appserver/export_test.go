package appserver

import (
	"log/slog"
	"time"
)

// WithoutKeepers has the engine start the app-server as programs do whose main
// does not begin with Main.
func (e *Engine) WithoutKeepers() { e.keepers = nil }

// PID is the id of the app-server's process, 0 without one.
func (e *Engine) PID() int {
	e.mu.Lock()
	l := e.launch
	e.mu.Unlock()
	if l == nil {
		return 0
	}
	<-l.done
	if l.err != nil {
		return 0
	}
	return l.child.pid
}

// LastWords are what an app-server that ends after that time is found to have said
// about its end, when it has written this to its standard error.
func LastWords(written string, after time.Duration) string {
	t := &tail{log: slog.New(slog.DiscardHandler)}
	_, _ = t.Write([]byte(written)) // never fails
	return t.last(time.Now().Add(after))
}
