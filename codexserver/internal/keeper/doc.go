// Package keeper starts commands, and the app-server of Codex, so that nothing of them
// outlives what it should, however it detaches itself and in whatever way the server
// ends.
//
//	Pool.Start(Order) ──▶ keeper ──▶ the command ──▶ what it starts
//
// A keeper is the program itself, started again. It is the parent and the subreaper of
// one command at a time: a process of the command whose parent has ended becomes a child
// of the keeper, also when it is a daemon in a session of its own without any inherited
// descriptor. So nothing of the command is left exactly when the kernel says that the
// keeper has no children, and only then the keeper takes the next command.
//
// A keeper kills what it keeps on request, and when the server's end of their socket
// closes. The kernel closes it in whatever way the server ends. (A parent-death signal
// would follow the thread that started the command. A keeper gets one that only resumes
// it, should a command have stopped it.)
//
// A keeper starts with an empty environment and hides its memory; the environment of a
// command comes with its order. A pool holds as many keepers as commands run at once, and
// those whose commands left something running.
//
// A keeper cannot kill processes of another user, such as those of a setuid program, and
// does not see what a service outside starts on behalf of a command. Keepers exist on
// Linux, in programs whose main begins with [Main].
package keeper
