// Package box confines commands to what a sandbox policy allows.
//
//	New(Options) ──▶ Sandbox.Confine(policy, cwd, env) ──▶ Confinement
//	Confinement.Apply(cmd): a command, which package run starts
//	Confinement.Start(cmd): git              Confinement.Do(f): a function
//
// # Roots
//
// A policy leaves some folders writable, its [Roots]. [Programs] looks at each of them once per engine, follows no
// symbolic link that a command may have made, and keeps the folder itself open. Rules are made from the open folders,
// so a command gains nothing by changing names. Some folders become roots only if the user's own configuration names
// them: the user's home, the configuration's folder, their parents, and git folders with everything in them.
//
// # On Linux
//
// A command has namespaces of its own, its rooms, where the system gives them: of mounts, processes and System V IPC, and
// without network access of the network. A list of steps furnishes them: a /proc, terminals, /dev/shm and a loopback
// that are not the machine's. So what stays inside is not refused. All of them or none: [RoomsAvailable] tries it once.
// What follows holds with and without them; sockets with a name, which are the machine's, are refused without network
// access.
//
// Over folders in which tools keep what they can make again, a command with rooms has overlays, see [Layers]. A layer is of one
// conversation. What is in it was written by its commands, and is not seen by others.
//
// The sandbox needs a kernel with Landlock and seccomp. It restricts one OS thread, which starts the command and then
// ends. The command and all its descendants inherit the restrictions; the server never has them.
//
//   - Landlock denies writing, removing, renaming and truncating outside the
//     roots, reading devices such as other terminals, and reading the memory, the
//     environment and the descriptors of processes outside the command.
//   - seccomp denies, without rooms, connecting and every socket but local pairs and listeners, and
//     memory and queues shared with others. With them it denies local sockets but pairs. It denies changing the limits, priority and
//     processors of others, setuid files, file attributes, new user namespaces,
//     io_uring, and the calls that administer the machine. Without roots it also denies
//     changing modes, owners, times and extended attributes.
//   - The command gets no new privileges, and loses the capabilities that would
//     circumvent all this.
//
// With rooms the restrictions are the command's own, from just before its program is executed. Without,
// the starting thread of a command belongs to a launcher, and that of git to the server. Until it ends it has the
// command's confinement, and Landlock lets the command reach it. So from its first use on the sandbox makes the whole
// process undumpable, see PR_SET_DUMPABLE in prctl(2): the process leaves no core, and debuggers of the same user
// cannot attach to it. The command's filter also denies signals to the thread. [HideProcess] makes a server undumpable
// from its start.
//
// Under a launcher a command may have fewer processes than the server, and cannot raise that limit. Root has no limit.
//
// # Profiles
//
// [Options.Profile] takes from what a sandbox mode gives, or says all about files. With rooms, what is denied has a mount over
// it, and what is read-only in something writable is a read-only mount; what a profile does not name at all is closed by
// Landlock. A name that is denied or read-only and missing is watched for. A profile that needs rooms where there are none
// lets nothing run, see [Options.Keeps].
//
// # On macOS
//
// The command runs under sandbox-exec, with a profile made from the same roots, in which .git
// and the configuration's folder are read-only. It confines commands, not functions. The
// profile is used only after a trial in which it denied what it must deny.
//
// A program named in [Options.Helper] replaces all of this.
//
// # The server's own programs
//
// What a command writes is hostile. The server's own programs run outside of the sandbox of commands: git, Codex, MCP
// servers. A command that could write one of them, or a link to it, would leave the sandbox with the next start.
// [Programs] records all folders that commands have been able to write since the start of the server, and refuses
// programs there. Folders for temporary files always count for programs that a PATH selects. They do not count for a
// program that the user names by its path.
//
// # What is left open
//
// Without a profile a command can read every file but devices, and execute every file. If it has roots, it can change modes, owners,
// times and extended attributes of its user's files outside the roots, and write into a .git in them. A hard link
// inside a root is a file of that root. Before Landlock's ninth version a command with network access can connect to
// named sockets, such as that of a container engine. Before its sixth version a command can signal every process of the
// user, such as the server and its launcher, if it has no rooms. Without rooms it can read the command lines of other
// processes.
//
// Where a system lacks what the sandbox needs, Confine fails and names it. A confinement is
// never weaker than requested.
package box
