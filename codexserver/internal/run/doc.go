// Package run starts the processes of the server: the commands that a model asks for, MCP servers, and the app-server
// of Codex. It alone ends what is left of them, however a process detaches itself, and however the server ends.
//
//	Spec  ──▶ Starter.Run ──▶ onOutput(stream, chunk)*  ──▶ Result
//	Talk  ──▶ Starter.Connect ──▶ Conn
//	Cmd   ──▶ Starter.Start ──▶ launcher ──▶ the command ──▶ what it starts
//
// A launcher is this program, started again for one command. It is the parent and the subreaper
// of the command: a process of the command whose parent has ended becomes a child of the
// launcher, even a daemon in a session of its own without inherited descriptors. So the
// command is gone exactly when the launcher has no children, and then the launcher ends.
//
// A launcher kills its command on request, and when the server's end of their connection closes. The kernel closes that
// end however the server ends. (A parent-death signal would arrive when the thread that started the launcher ends. The
// launcher asks for one that only resumes it, in case its command has stopped it.)
//
// A launcher has no variables of the server's environment, only numbered ones: the words of the
// command. It hides its memory, and these with it.
//
// A command with [Rooms] has a further process above it, the first of a namespace of processes, with which the kernel
// ends all others, and which ends with its launcher. What follows is about those without.
//
// A killed launcher cannot end anything. The server then kills the processes of the launcher's session, which is the
// command's too, and those that they have started. A daemon in a session of its own whose parent has ended is left, and
// so is everything when the launcher and the server are killed together.
//
// A launcher cannot kill processes of another user, such as those of a setuid program, and does not see processes that
// a service starts on behalf of a command. Launchers exist only on Linux. Programs there begin with [Main], or [Ready]
// returns an error and nothing starts. On other systems it starts processes itself, and ends them with their groups.
//
// [Spec.Leftovers] keeps processes that a command left running on purpose. [Spec.Confinement] decides which files and
// networks a command may use. [EnvPolicy] decides which variables of the server's environment it sees.
package run
