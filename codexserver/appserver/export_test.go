package appserver

// SplitCommand is splitCommand.
var SplitCommand = splitCommand

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
