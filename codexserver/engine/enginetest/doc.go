// Package enginetest tests whether an engine keeps the promises of package engine:
//
//	func TestEngine(t *testing.T) {
//		enginetest.Run(t, func(t *testing.T) *enginetest.Subject {
//			…
//			return &enginetest.Subject{Engine: e, Config: cfg, Script: script}
//		})
//	}
//
// The caller of Run scripts the engine's model: Script sets its next answers, one [Step]
// for each. The suite acts as the server and as the person:
//
//	Run ── Script(steps) ──▶ your model ◀── asks ── your engine
//	 └──── Start, Turn, a Host that approves, denies, aborts, waits ──▶ ┘
//
// # A subject
//
// Run calls the function once at first, to see what the engine can do, and once for each
// promise, so that each has a fresh engine. An engine that needs a model provider uses a
// scripted one, such as that of package providertest. Script translates the steps:
//
//	Step{Command: argv}   the model calls its tool for commands with that argv
//	Step{Text: text}      the model says the text, and the turn ends
//	Step{Fail: true}      the provider fails, and continues to fail
//	Step{Asked: f, …}     f receives the model's input before the model answers
//
// Config must make the engine ask about every command that is not known to be safe, for
// example with the ApprovalPolicy untrusted. The suite sets Cwd to a new folder.
//
// # What it tests
//
// There is a subtest for each of these: ids and the order of events; questions that are
// approved, denied and aborted; interrupts while a question is open and while a command
// runs; failed turns; concurrent conversations; and what each optional interface promises, if the
// engine or its conversations have it, as well as reviews, see [engine.Traits]. No event may follow
// after a turn has returned.
//
// # What can go wrong
//
// The suite runs commands of the POSIX shell, so it needs a system with one. It waits at
// most half a minute for an event and a minute for the end of a turn. A subtest that waited
// that long names the event that did not come, and those that came.
//
// # Where to go next
//
// The tests of packages native and appserver have a subject each. The example of this
// package has one in seventy lines, with its engine.
package enginetest
