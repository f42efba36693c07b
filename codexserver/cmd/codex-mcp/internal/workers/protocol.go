package workers

// Name is os.Args[0] of this program when it runs as a worker. Flags and arguments cannot
// select it.
const Name = "codex-mcp-worker"

// The pool sends these messages over the control pipe, after the settings. Each is a line.
const (
	drainMessage     = "drain"
	checkIdleMessage = "check-idle"
)

// The worker sends these messages over the status pipe. Each is a line.
const (
	readyMessage   = "ready"
	drainedMessage = "drained"
	idleMessage    = "idle"   // answers checkIdleMessage
	busyMessage    = "busy"   // answers checkIdleMessage
	errorPrefix    = "error " // the reason follows
)

// The descriptors that a worker inherits.
const (
	controlFD = iota + 3
	statusFD
	listenerFD
	firstFileFD
)

// The pool sets these headers to the principal of a request and its scopes.
const (
	principalHeader = "Codex-Mcp-Principal"
	scopesHeader    = "Codex-Mcp-Scopes"
)
