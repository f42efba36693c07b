package workerlink

import (
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// Name is os.Args[0] of codex-mcp when it runs as a worker. Flags and arguments cannot
// select it.
const Name = "codex-mcp-worker"

// Version is the version of this protocol. The gateway and its workers must have the same.
const Version = 4

// The gateway sends these messages over the control pipe, after the settings. Each is a
// line.
const (
	DrainMessage = "drain" // let running work end, and accept no new work
	LoadMessage  = "load"  // answer with a [Status] that has the load
)

// The descriptors that a worker inherits. The connections for the approval log, for the
// trace and to the store follow, if there are such.
const (
	ControlFD = iota + 3
	StatusFD
	ListenerFD
	firstFileFD
)

// The gateway sets these headers to the principal of a request and its scopes.
const (
	PrincipalHeader = "Codex-Mcp-Principal"
	ScopesHeader    = "Codex-Mcp-Scopes"
)

// MethodHeader is the header of a worker's answers that has the method of the request, see
// [mcphttp.Options].MethodHeader.
const MethodHeader = "Codex-Mcp-Method"

// Status is what a worker reports. One field is set.
type Status struct {
	// Ready means that the worker accepts requests.
	Ready bool `json:"ready,omitzero"`
	// Drained means that no work is running any more.
	Drained bool `json:"drained,omitzero"`
	// Error says why the worker cannot start.
	Error string `json:"error,omitzero"`
	// Load answers [LoadMessage].
	Load *Load `json:"load,omitzero"`
	// Observed is what the server did.
	Observed *Observation `json:"observed,omitzero"`
}

// Load is [mcphttp.Load].
type Load mcphttp.Load

// Idle reports whether the worker may end.
func (l *Load) Idle() bool { return l.Requests == 0 && l.Sessions == 0 && !l.Busy }

// Observation is one call of a method of [codexserver.Observer] and its like. The worker numbers calls, turns and questions.
type Observation struct {
	Kind Kind `json:"kind"`
	// Call, Turn and Question are what the observation is about.
	Call     uint64 `json:"call,omitzero"`
	Turn     uint64 `json:"turn,omitzero"`
	Question uint64 `json:"question,omitzero"`

	// Tool and Traces are of a call. Of two traces the last valid one counts.
	Tool   string              `json:"tool,omitzero"`
	Traces []map[string]string `json:"traces,omitzero"`
	// Thread and Used are of a turn.
	Thread string              `json:"thread,omitzero"`
	Used   protocol.TokenUsage `json:"used,omitzero"`
	// Step is of a turn.
	Step Step `json:"step,omitzero"`
	// Asks, Decision and By are of a question: "command", "patch" or "other".
	Asks     string `json:"asks,omitzero"`
	Decision string `json:"decision,omitzero"`
	By       string `json:"by,omitzero"`
	// Failed and Aborted are of the end of a call or turn.
	Failed  bool `json:"failed,omitzero"`
	Aborted bool `json:"aborted,omitzero"`
}

// Kind is the kind of an [Observation].
type Kind string

// The kinds.
const (
	KindBegin     Kind = "begin"      // a call of a tool begins
	KindEnd       Kind = "end"        // a call ends
	KindTurnBegin Kind = "turn"       // a turn of a call begins
	KindTurnEnd   Kind = "turn-ended" // a turn ends
	KindStep      Kind = "step"       // an event of a turn
	KindAsked     Kind = "asked"      // a question of a turn
	KindDecided   Kind = "decided"    // its decision
)
