package setting

import (
	"cmp"
	"time"
)

// Sandbox says how the native engine confines commands under the sandbox modes read-only and
// workspace-write. By default Linux confines with Landlock and seccomp, macOS with sandbox-exec, and
// other systems have no sandbox. Where the system cannot confine a command fully, the engine asks the user, or
// refuses the command under the policy never.
type Sandbox struct {
	// Helper is a program, with its arguments, that confines instead of this server. It
	// runs as HELPER… POLICY -- COMMAND…, where POLICY is the JSON text of {"mode",
	// "writable_roots", "network_access", "cwd"}.
	Helper []string
	// DenyRead are files and folders that neither commands nor the model's tools read, in each sandbox mode: absolute, with ~/
	// for the home, or below the working folder. They may be patterns with *, ?, [ ] and **.
	DenyRead []string
	// Strict shortens the list of commands that are known to be safe: git is not
	// on it, since a repository's configuration can make git start programs, and
	// no command with words that the shell expands.
	Strict bool
	// Caches are folders in which tools keep what they can make again, absolute or with ~/ for the home. On Linux, commands in
	// workspace-write read them and write into layers of their conversation. Nil is the usual ones, an empty list is none.
	Caches []string
}

// Tools are a set of tools for the models of the native engine.
type Tools string

// The sets.
const (
	// ToolsAuto is ToolsFiles with the Chat API and ToolsCodex with the Responses API. The empty
	// text means the same.
	ToolsAuto Tools = "auto"
	// ToolsFiles are tools that read, list, search, edit and write files.
	ToolsFiles Tools = "files"
	// ToolsCodex is Codex's own set: the shell, and patches.
	ToolsCodex Tools = "codex"
)

// Limits bound one turn of the native engine. A turn that reaches a limit fails with an error that
// names it; the conversation stays usable.
type Limits struct {
	// ModelRequests is the number of requests to the model. 0 means 1,000, less
	// than 0 no limit.
	ModelRequests int
	// Tokens is the number of tokens of all requests together, as the provider
	// counts them. The response that uses them up is kept, but its calls do not
	// run. 0 or less means no limit.
	Tokens int64
	// WallTime is the time from start to end, approvals included. 0 or less means
	// no limit.
	WallTime time.Duration
	// ResponseBytes is the size of one response of the model, as it is sent. 0 means 64 MiB. What it says may have 2 MiB.
	ResponseBytes int64
	// Command is the time after which a command ends for which the model requests no
	// other. 0 means two minutes. The model may request up to an hour, or this if it is
	// longer.
	Command time.Duration
}

// Resolved returns l with its defaults.
func (l Limits) Resolved() Limits {
	l.ModelRequests = cmp.Or(l.ModelRequests, 1000)
	l.ResponseBytes = cmp.Or(max(l.ResponseBytes, 0), 64<<20)
	l.Command = cmp.Or(max(l.Command, 0), 2*time.Minute)
	return l
}
