package workerlink

import "log/slog"

// Settings are the settings with which a worker starts. The gateway sends them over a pipe,
// because every process can read a command line.
type Settings struct {
	// Version is [Version].
	Version int `json:"version"`
	// Principal is the user. Home is the user's own $CODEX_HOME. Files are the
	// configuration files that the worker writes there.
	Principal string            `json:"principal"`
	Home      string            `json:"home"`
	Files     map[string][]byte `json:"files"`
	// Overrides, Engine, Codex, Strict, Log and LogFormat come from the command line.
	Overrides []string   `json:"overrides"`
	Engine    string     `json:"engine"`
	Codex     string     `json:"codex"`
	Strict    bool       `json:"strict"`
	Log       slog.Level `json:"log"`
	LogFormat string     `json:"logFormat"`
	// Folders are the folders that the user may use. Locked are the arguments that it
	// may not set. Turns and Tasks limit what it runs at the same time, with 0 for no limit.
	Folders []string `json:"folders"`
	Locked  []string `json:"locked"`
	Turns   int      `json:"turns"`
	Tasks   int      `json:"tasks"`
	// Metadata is the URL of the server's metadata as an OAuth resource, or "".
	Metadata string `json:"metadata"`
	// Measured means that the steps of turns are observed that only metrics and traces need.
	Measured bool `json:"measured"`
	// Traced means that observations of calls name the tool and the trace.
	Traced bool `json:"traced"`

	// Record and Trace report whether the worker inherits a connection for the approval
	// log and for the trace. The gateway serves them with [ServeLog].
	Record bool `json:"record"`
	Trace  bool `json:"trace"`
	// Store reports whether the worker inherits a connection to the store of its home,
	// after these. The gateway serves it with [ServeStore].
	Store bool `json:"store"`
}
