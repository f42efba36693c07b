// Package command runs the commands that a model asks for: each in a session
// of its own, with its output streamed and bounded, and gone, children
// included, when [Run] returns.
//
//	Spec ──▶ Run ──▶ onOutput(stream, chunk)*  ──▶ Result ──▶ ModelOutput
//
// What a command may touch is decided by whoever fills in [Spec.Starter]; what
// it may know of the server's environment by [EnvPolicy].
package command
