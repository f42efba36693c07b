// Package proc starts the processes of the server: the commands that a model asks for, and
// the app-server of Codex. It ends all of them, however a process detaches itself, and
// however the server ends.
//
//	Spec  ──▶ Run ──▶ onOutput(stream, chunk)*  ──▶ Result ──▶ ModelOutput
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
// A keeper cannot kill processes of another user, such as those of a setuid program, and
// does not see processes that a service starts on behalf of a command. Keepers exist only
// on Linux, in programs whose main begins with [Main].
//
// Without a keeper, this process starts a command, and finds its processes by their
// session, their parents and a descriptor that they inherit. [Spec.Leftovers] keeps
// processes that a command left running on purpose.
//
// The caller's [Spec.Starter] decides which files and networks a command may use.
// [EnvPolicy] decides which variables of the server's environment it sees.
package proc
