// Package enginetest holds an engine against the promises of package engine:
//
//	func TestEngine(t *testing.T) {
//		enginetest.Run(t, func(t *testing.T) *enginetest.Subject {
//			…
//			return &enginetest.Subject{Engine: e, Config: cfg, Script: script}
//		})
//	}
//
// The engine's model is scripted by the caller of Run: Script says what it does next, a
// [Step] for each of its answers. The suite takes the place of the server and of the
// person:
//
//	Run ── Script(steps) ──▶ your model ◀── asks ── your engine
//	 └──── Start, Turn, a Host that approves, denies, aborts, waits ──▶ ┘
//
// # A subject
//
// Run calls the function once for each promise, so that each has a fresh engine. An
// engine that asks a model provider takes a scripted one, such as package providertest,
// and Script translates the steps:
//
//	Step{Command: argv}   the model calls its tool for commands with that argv
//	Step{Text: text}      the model says the text, and the turn ends
//	Step{Fail: true}      the provider fails, and continues to fail
//	Step{Asked: f, …}     f gets what the model was sent, before it answers
//
// Config must make the engine ask for every command that is not known to be safe:
// ApprovalPolicy untrusted does. Cwd is set by the suite, to a folder of its own.
//
// # What it looks at
//
// Ids and the order of events, approvals given, denied and aborted, interrupts while a
// question is open and while a command runs, failed turns, conversations side by side,
// and messages while a turn runs where conversations are an [engine.Steerer]; a subtest
// for each. Nothing may be emitted after a turn has returned. [Promises] lists them in
// words, for a table of features.
//
// # What can go wrong
//
// The suite runs commands of the POSIX shell, so it needs a system that has one. It waits
// at most half a minute for anything; a subtest that takes so long has found an engine
// that hangs. The optional interfaces of an engine are not looked at.
//
// # Where to go next
//
// The tests of packages native and appserver show two subjects; the example here has one
// in seventy lines, engine included.
package enginetest
