// Package command runs the commands that a model asks for. Each runs in a session of its
// own, with its output streamed and limited. When [Run] returns, its processes are gone.
//
//	Spec ──▶ Run ──▶ onOutput(stream, chunk)*  ──▶ Result ──▶ ModelOutput
//
// With [Spec.Keepers] a keeper starts the command and ends all its processes, see package
// keeper. Without one, this process starts the command, and finds its processes by their
// session, their parents and a descriptor that they inherit. [Spec.Leftovers] keeps
// processes that a command left running on purpose.
//
// The caller's [Spec.Starter] decides which files and networks a command may use.
// [EnvPolicy] decides which variables of the server's environment it sees.
package command
