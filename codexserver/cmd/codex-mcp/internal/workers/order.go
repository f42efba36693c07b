package workers

import "log/slog"

// Name is the first word of our own program when it is to be a worker. No flag and no
// word of a user leads there.
const Name = "codex-mcp-worker"

// Order is what a worker is to do. It comes over a pipe: a command line is for all to
// read.
type Order struct {
	// Principal is the user. Home is its own $CODEX_HOME, and Files are the
	// configuration that it gets.
	Principal string            `json:"principal"`
	Home      string            `json:"home"`
	Files     map[string][]byte `json:"files"`
	// Approver is the user that decides what this one's turns ask; "" when this one
	// does, or none.
	Approver string `json:"approver"`
	// Overrides, Engine, Codex, Strict, Log and LogFormat are the command line's.
	Overrides []string   `json:"overrides"`
	Engine    string     `json:"engine"`
	Codex     string     `json:"codex"`
	Strict    bool       `json:"strict"`
	Log       slog.Level `json:"log"`
	LogFormat string     `json:"logFormat"`
	// Folders, Locked, Turns and Tasks are what the user may.
	Folders []string `json:"folders"`
	Locked  []string `json:"locked"`
	Turns   int      `json:"turns"`
	Tasks   int      `json:"tasks"`
	// Metadata is the URL of the server's metadata as an OAuth resource, "" without.
	Metadata string `json:"metadata"`

	// Record and Trace say which files are handed over, to be appended to.
	Record bool `json:"record"`
	Trace  bool `json:"trace"`
}

// The words that follow an order, and those of a worker. Each is a line.
const (
	drainWord   = "drain"
	restWord    = "rest" // may it end?
	readyWord   = "ready"
	drainedWord = "drained"
	idleWord    = "idle" // the two answers to restWord
	busyWord    = "busy"
	errorWord   = "error " // and why
)

// Where a worker finds what it inherits.
const (
	orderFD = iota + 3
	answerFD
	listenerFD
	firstFileFD
)

// The headers by which the pool says whose request it is.
const (
	principalHeader = "Codex-Mcp-Principal"
	scopesHeader    = "Codex-Mcp-Scopes"
)
