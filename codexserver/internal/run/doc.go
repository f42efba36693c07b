// Package run starts the processes of the server: the commands that a model asks for, MCP
// servers, and the app-server of Codex. It alone ends what is left of them, however a
// process detaches itself, and however the server ends.
//
//	Spec  ──▶ Pool.Run ──▶ onOutput(stream, chunk)*  ──▶ Result ──▶ ModelOutput
//	Talk  ──▶ Pool.Connect ──▶ Conn
//	Order ──▶ Pool.Start ──▶ keeper ──▶ the command ──▶ what it starts
//
// A keeper is this program, started again. It is the parent and the subreaper of one
// command at a time: a process of the command whose parent has ended becomes a child of
// the keeper, even a daemon in a session of its own without inherited descriptors. So the
// command is gone exactly when the keeper has no children. Only then does the keeper take
// the next command.
//
// A keeper kills its command on request, and when the server's end of their socket closes.
// The kernel closes that end however the server ends. (A parent-death signal would arrive
// when the thread that started the command ends. The keeper asks for one that only resumes
// it, in case a command has stopped it.)
//
// A keeper starts with an empty environment and hides its memory. The environment of a
// command comes with its order. A pool has a keeper for each command that runs, and for
// each that left processes running.
//
// A killed keeper cannot end anything. Its pool then kills the processes that have the
// keeper's mark, a limit that they inherit.
//
// A keeper cannot kill processes of another user, such as those of a setuid program, and
// does not see processes that a service starts on behalf of a command. Keepers exist only
// on Linux. Programs there begin with [Main], or [Ready] returns an error and nothing
// starts. On other systems a pool starts processes itself, and ends them with their groups.
//
// [Spec.Leftovers] keeps processes that a command left running on purpose.
// [Spec.Confinement] decides which files and networks a command may use. [EnvPolicy]
// decides which variables of the server's environment it sees.
package run
