// Package command runs the commands that a model asks for: each in a session of its own,
// with its output streamed and bounded, and gone, children included, when [Run] returns.
//
//	Spec ──▶ Run ──▶ onOutput(stream, chunk)*  ──▶ Result ──▶ ModelOutput
//
// With [Spec.Keepers] a keeper starts the command, see package keeper, and nothing
// escapes it. Without, this process starts the command, and finds its processes again by
// their session, their parents and a descriptor that they inherit. [Spec.Leftovers] keeps
// what a command left running on purpose.
//
// The caller's [Spec.Starter] decides what a command may touch; [EnvPolicy] decides what
// it sees of the server's environment.
package command
