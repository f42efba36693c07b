// Package sandbox confines commands to what a sandbox policy allows.
//
//	New(Options) ──▶ Sandbox.Confine(policy, cwd, env) ──▶ Confinement
//	Confinement.Start(cmd): a command        Confinement.Do(f): a function
//	Confinement.Order(cmd): a command that a keeper starts; see package keeper
//
// # Tiers
//
// The first tier needs nothing but a Linux kernel with Landlock and seccomp. The
// restrictions are put on one OS thread, which starts the command and then ends:
// the command and all its descendants keep them for good, the server never has
// them. It denies writing, removing, renaming and truncating outside of the
// writable folders, connecting and every socket but local pairs and listeners,
// new privileges, signals to and tracing of other processes, io_uring, and the
// system calls and capabilities that administrate the machine or look into it.
//
// A thread of the keeper's starts the command, or of the server's where there are
// no keepers. Until it has ended it is confined as the command is, which Landlock
// would let reach it. So from the first use of the tier the whole process is
// undumpable, see PR_SET_DUMPABLE in prctl(2): it leaves no core, and debuggers
// of the same user cannot attach to it. And the command's filter denies signals
// to the thread. [HideProcess] makes a server undumpable from its start.
//
// Under a keeper a command has a lower limit of processes than the server, which
// it cannot raise; root has no limit.
//
// The second tier, [TierNamespaces], also starts the command in user and mount
// namespaces of its own, in which all but the writable folders is read-only and
// .git and the configuration's folder are read-only everywhere: so modes, owners
// and times of files outside cannot be changed either, which Landlock has no
// word for, and the command has no capabilities at all. It re-executes the
// program, whose main must begin with [Main].
//
// A program named in [Options.Helper] replaces both.
//
// # What is left open
//
// In both tiers a command may change the resource limits, the priority and the
// processors of other processes of the same user, the server among them: an
// RLIMIT_CPU could end it.
//
// Every file may be read and executed. In the first tier the modes, owners and
// times of files outside can be changed by their owner. In both, a hard link
// inside a writable folder is a file of that folder, and a .git that is not there
// may be made. With network access named sockets, such as that of a container
// engine, can be connected to before Landlock's ninth version. Before its sixth
// signals reach every process of the user: a command can kill its keeper, and a
// daemon of its that has left the session outlives it then.
//
// Where a system lacks what a tier needs, Confine fails and says what: it never
// gives less than was asked for.
package sandbox
