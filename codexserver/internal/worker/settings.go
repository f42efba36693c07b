package worker

import (
	"log/slog"

	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// Settings are the settings with which a worker starts. The gateway sends them over the connection,
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
	// Record reports whether the gateway takes lines for the approval log.
	Record bool `json:"record"`
}

// Activity is what a worker does.
type Activity string

// The activities. A gateway takes any other word for Busy.
const (
	// Busy means that something runs that must not be interrupted.
	Busy Activity = "busy"
	// Waiting means that each turn waits for an answer, and that the next worker asks again.
	Waiting Activity = "waiting"
	// Connected means that nothing runs, and that clients have sessions or streams.
	Connected Activity = "connected"
	// Idle means that the worker may end.
	Idle Activity = "idle"
)

// Load is what a worker does, in figures.
type Load struct {
	// Activity is what the worker does.
	Activity Activity `json:"activity"`
	// Requests, Sessions and Turns are how many are open.
	Requests int `json:"requests"`
	Sessions int `json:"sessions"`
	Turns    int `json:"turns"`
}

// Load returns the load of a server, of which of returns its part.
func (w *Work) Load(of func() mcphttp.Load) Load {
	turns, busy, begun := w.turns()
	now := of()
	_, _, last := w.turns()
	l := Load{Activity: Connected, Requests: now.Requests, Sessions: now.Sessions, Turns: turns}
	switch {
	case busy > 0, now.Parked, last != begun:
		// No other worker could take the answer of a call that is parked. One that began meanwhile may be that answer.
		l.Activity = Busy
	case turns > 0:
		l.Activity = Waiting
	case now.Busy:
		l.Activity = Busy
	case now.Requests == 0 && now.Sessions == 0:
		l.Activity = Idle
	}
	return l
}
