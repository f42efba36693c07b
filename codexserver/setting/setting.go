// Package setting has what users set for the server and its engines. A setting stands here once,
// with its meaning and its default: the options of packages codexserver and native have these
// types, and codex-mcp reads them from codex-mcp.toml.
//
// A duration of 0 is the default that the field's comment names. So is a negative one, unless the
// comment gives it a meaning. The file has no negative durations: where it accepts 0, that means
// what a negative value means here.
package setting

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// The defaults of settings that are no fields of a type.
const (
	// DefaultResult is the size of the longest answer, and of the largest structured content
	// of a result, in bytes of JSON.
	DefaultResult = 80_000
)

// Calls say what calls of the tools may do, and what they return. The zero value is the default.
type Calls struct {
	// Tools are the tools to offer besides codex and codex-reply, such as "codex-wait".
	// An argument whose result needs a tool that is not offered, such as background, is
	// refused. Default, when nil: all that the engine can serve.
	Tools []string
	// AlwaysLoad asks clients that load tools on demand to load these at once.
	AlwaysLoad bool
	// LockedArguments are arguments of the tool codex that a call may not have, such as
	// "config" and "sandbox": the tool does not offer them, and a call with one is
	// refused. Calls are mostly written by a model. None by default.
	LockedArguments []string
	// TrustedCalls lets the argument config of the tool codex set every key of the
	// engine's configuration. By default it may set the model, its effort, the sandbox,
	// the approval policy and some others. Keys that could name a program, a provider or a
	// file are refused, or left out with a warning.
	TrustedCalls bool
	// FullAccess says what happens to a call that asks for more than the configuration gives,
	// such as the sandbox mode danger-full-access. Default: [FullAccessAsk].
	FullAccess FullAccess
	// Folders limit what a call may name: its working folder, the folders that it
	// makes writable, its images and its repository. A symbolic link counts as the
	// place that it leads to. TrustedCalls has no effect with them. They do not limit
	// the sandbox mode danger-full-access, which LockedArguments can rule out. They are
	// absolute; the first one is also the working folder of conversations whose caller
	// names none. Default, when nil: no limit.
	Folders []string
	// Check is a line that says whether the work of a turn is done, such as "go test ./...". It is run at the end of each
	// turn of codex and codex-reply as the model's shell runs a line; exit 0 passes. The check of a call comes after it.
	// Default: none.
	Check string
	// CheckTime is how long a check, or the set-up of a worktree, may take. Default: 10 minutes.
	CheckTime time.Duration
	// Setup is a line that is run in each new git worktree as a check is, before the model is asked. If it does not pass,
	// the turn fails. Default: none.
	Setup string
	// WorktreeBytes is how many bytes all worktrees may take before a call gets no further one. Default: no limit.
	WorktreeBytes int64
	// Turns is how many turns may run or wait at a time. A call for one more gets an error
	// result. Default: no limit.
	Turns int
	// Patience is how long a call of a tool may take. A call that takes longer ends with the
	// thread's id and what was done so far; its turn continues in the background, and
	// codex-wait has its result. Default: forever, but less than the limit of clients that
	// are known to give calls up after a fixed time, by the name in their clientInfo. A
	// negative value means forever for all. It has nothing to do with how long a question
	// stays open.
	Patience time.Duration
	// MaxResult bounds the answer in a result's text, and its structured content, in bytes
	// of JSON. Default: [DefaultResult].
	MaxResult int
}

// FullAccess says what happens to a call that asks for more than the configuration gives.
type FullAccess string

// The values.
const (
	// a person is asked once for the conversation; a call whose client cannot ask is refused
	FullAccessAsk   FullAccess = "ask"
	FullAccessAllow FullAccess = "allow" // it gets what it asks for
	FullAccessDeny  FullAccess = "deny"  // it is refused
)

// Changes say whether the changes of a turn are found: its folder is read before and after the
// turn. Where that is not possible, the result says so and has the changes of patches. The
// zero value is the default.
type Changes struct {
	// Read reads the folder. Default: true.
	Read *bool
}

// Tasks say how calls become tasks. The zero value is the default.
type Tasks struct {
	// Mode says whether calls become tasks. Default: [TasksAuto].
	Mode TaskMode
	// Grace is how long a call runs before it becomes a task. Default: a second. With a
	// negative value it becomes a task at once.
	Grace time.Duration
	// Limit is how many tasks of one principal may be unfinished at a time. Default: 64.
	Limit int
	// Resume continues the tasks and background turns of a server with the same Home that was
	// killed, after the first call of a client, if the engine can. Default: true.
	Resume *bool
}

// TaskMode says whether calls become tasks.
type TaskMode string

// The values.
const (
	TasksAuto  TaskMode = "auto"  // those of clients that declare tasks
	TasksNever TaskMode = "never" // none
)

// Resolved returns t with its defaults.
func (t Tasks) Resolved() Tasks {
	t.Mode = cmp.Or(t.Mode, TasksAuto)
	t.Resume = cmp.Or(t.Resume, new(true))
	t.Grace = cmp.Or(t.Grace, time.Second)
	t.Limit = cmp.Or(max(t.Limit, 0), 64)
	return t
}

// maxCheck is how long a check may be in bytes.
const maxCheck = 4 << 10

// ValidateCheck returns an error unless a check, or a set-up, is one line, or empty.
func ValidateCheck(check string) error {
	if len(check) > maxCheck || strings.ContainsAny(check, "\n\r\x00") || check != "" &&
		strings.TrimSpace(check) == "" {
		return fmt.Errorf("want one line with a command, of at most %d bytes", maxCheck)
	}
	return nil
}
