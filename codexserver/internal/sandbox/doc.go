// Package sandbox confines commands to what a sandbox policy allows.
//
//	New(Options) ──▶ Sandbox.Confine(policy, cwd, env) ──▶ Confinement
//	Confinement.Start(cmd): a command        Confinement.Do(f): a function
//	Confinement.Order(cmd): a command that a keeper starts; see package keeper
//
// # Roots
//
// A policy leaves some folders writable, its [Roots]. [Folders] looks at each of them
// once per engine, follows no symbolic link that a command may have made, and holds the
// folder itself: rules and mounts are made from what it holds, so that a command gains
// nothing when it changes names. The user's home, the configuration's folder, what holds
// them, git folders and what lies in them are not roots, unless the user's own
// configuration names them.
//
// # Tiers
//
// The first tier needs a Linux kernel with Landlock and seccomp. It restricts one OS
// thread, which starts the command and then ends: the command and all its descendants
// keep the restrictions, the server never has them.
//
//   - Landlock denies writing, removing, renaming and truncating outside the
//     roots, reading devices such as other terminals, and reading the memory, the
//     environment and the descriptors of processes outside the command.
//   - seccomp denies connecting and every socket but local pairs and listeners,
//     memory and queues shared with others, changing the limits, priority and
//     processors of others, setuid files, file attributes, new user namespaces,
//     io_uring, and the calls that administrate the machine.
//   - The command gets no new privileges, and loses the capabilities that would
//     lead around all this.
//
// The starting thread is a keeper's, or the server's where there are no keepers. Until it
// has ended it is confined as the command is, and Landlock lets the command reach it. So
// the tier makes the whole process undumpable from its first use on, see PR_SET_DUMPABLE
// in prctl(2): it leaves no core, and debuggers of the same user cannot attach to it. And
// the command's filter denies signals to the thread. [HideProcess] makes a server
// undumpable from its start.
//
// Under a keeper a command has a lower limit of processes than the server, which it
// cannot raise. Root has no limit.
//
// The second tier, [TierNamespaces], also starts the command in user, mount and IPC
// namespaces of its own. There everything but the roots is read-only, and so are .git and
// the configuration's folder, which also keep their places; /dev has no terminals and no
// disks. So modes, owners and times of files outside cannot be changed either, which
// Landlock does not cover, and the command has no capabilities. The tier executes this
// program again, whose main must begin with [Main].
//
// On macOS both tiers run the command under sandbox-exec, with a profile made from the
// same roots. It confines commands, not functions. The profile is used only after a trial
// in which it denied what it must deny.
//
// A program named in [Options.Helper] replaces all of it.
//
// # What is left open
//
// Every file but a device may be read, and every file executed. In the first tier the
// owner of files outside can change their modes, owners and times. In both, a hard link
// inside a root is a file of that root, and a .git that is not there may be made. With
// network access, named sockets such as that of a container engine can be connected to
// before Landlock's ninth version. Before its sixth version signals reach every process
// of the user: a command can kill its keeper, and a daemon that has left its session
// outlives it then. The command lines of other processes can be read.
//
// Where a system lacks what a tier needs, Confine fails and says what: it is never weaker
// than requested.
package sandbox
