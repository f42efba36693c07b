package box_test

// attacks are further rows of the kinds, by other ways: descriptors that only name a file, links in
// /proc, calls that take flags, and calls that nobody should need.
var attacks = map[string][]row{
	"read any file that you can read": {
		{name: "read outside by a descriptor", probe: []string{"reopen to read", "../outside/file"}, readOnly: "ok", write: "ok"},
		{name: "read a program of the system by a descriptor", probe: []string{"reopen to read", "/bin/sh"}, readOnly: "ok", write: "ok"},
	},
	"read a terminal, a disk or another device": {
		{name: "read a terminal by a descriptor", probe: []string{"reopen to read", "@terminal"}, readOnly: "EACCES", write: "EACCES"},
		{name: "read a new terminal by a descriptor", probe: []string{"reopen to read", "/dev/ptmx"}, readOnly: "EACCES", write: "EACCES"},
	},
	"write in the working folder, `/tmp`, `$TMPDIR`": {
		{name: "write in the workspace by a descriptor", probe: []string{"reopen to write", "file"}, readOnly: "EACCES", write: "ok"},
		{name: "create in the workspace by a descriptor", probe: []string{"create by descriptor", "new"}, readOnly: "EACCES", write: "ok"},
	},
	"write, create, remove, rename, truncate elsewhere": {
		{name: "write outside by a descriptor", probe: []string{"reopen to write", "../outside/file"}, readOnly: "EACCES", write: "EACCES"},
		{name: "truncate outside by a descriptor", probe: []string{"truncate by descriptor", "../outside/file"}, readOnly: "EACCES", write: "EACCES"},
		{name: "create outside by a descriptor of the folder", probe: []string{"create by descriptor", "../outside/new"}, readOnly: "EACCES", write: "EACCES"},
		{name: "exchange a file with one outside", probe: []string{"call", "renameat2", "-100", "text:file", "-100", "text:../outside/file", "2"}, readOnly: "EACCES|EXDEV", write: "EACCES|EXDEV"},
		{name: "leave a device in the place of a file outside", probe: []string{"call", "renameat2", "-100", "text:../outside/file", "-100", "text:../outside/new", "4"}, root: true, readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
	},
	"write into a `.git` at any depth, or `$CODEX_HOME`, in a writable folder, or put others in their place": {
		{name: "exchange .git with another folder", probe: []string{"call", "renameat2", "-100", "text:.git", "-100", "text:sub", "2"}, readOnly: "EACCES|EXDEV", write: "ok"},
		{name: "create in .git by a descriptor", probe: []string{"create by descriptor", ".git/hooks/evil"}, readOnly: "EACCES", write: "ok"},
		{name: "exchange the configuration with another folder", probe: []string{"call", "renameat2", "-100", "text:home", "-100", "text:sub", "2"}, readOnly: "EACCES|EXDEV", write: "ok"},
	},
	"change the mode, owner, times or extended attributes of a file elsewhere": {
		{name: "chmod outside by a descriptor", probe: []string{"chmod by descriptor", "../outside/file", "600"}, readOnly: "EPERM", write: "ok"},
		{name: "times outside by a descriptor", probe: []string{"times by descriptor", "../outside/file"}, readOnly: "EPERM", write: "ok"},
	},
	"write through a hard link that lies in a writable folder": {
		{name: "write through a hard link by a descriptor", probe: []string{"reopen to write", "hardlink"}, readOnly: "EACCES", write: "ok"},
		{name: "truncate through a hard link by a descriptor", probe: []string{"truncate by descriptor", "hardlink"}, readOnly: "EACCES", write: "ok"},
	},
	"make a program that runs with its owner's rights or with capabilities": {
		{name: "chmod to setuid by a descriptor", probe: []string{"chmod by descriptor", "file", "4755"}, readOnly: "EPERM", write: "EPERM"},
		{name: "chmod a folder to setgid by a descriptor", probe: []string{"chmod by descriptor", "sub", "2755"}, readOnly: "EPERM", write: "EPERM"},
	},
	"change a file's attributes, as `chattr` does": {
		{name: "FS_IOC_SETFLAGS of 32 bits", probe: []string{"call", "ioctl", "0", "0x40046602", "words:0"}, free: "ENOTTY", readOnly: "EPERM", write: "EPERM"},
		{name: "FS_IOC_SETFLAGS with other high bits", probe: []string{"call", "ioctl", "0", "0x140086602", "words:0"}, free: "ENOTTY|EFAULT", readOnly: "EPERM", write: "EPERM"},
	},
	"open a network connection, ask a name server": {
		{name: "socket of multipath TCP", probe: []string{"call", "socket", "2", "1", "262"}, free: "ok|EPROTONOSUPPORT|ENOPROTOOPT", readOnly: "EPERM", write: "EPERM"},
		{name: "socket of a virtual machine", probe: []string{"call", "socket", "40", "1", "0"}, free: "ok|EAFNOSUPPORT", readOnly: "EPERM", write: "EPERM"},
		{name: "socket of the kernel's ciphers", probe: []string{"call", "socket", "38", "5", "0"}, free: "ok|EAFNOSUPPORT", readOnly: "EPERM", write: "EPERM"},
		{name: "socket inet with other flags", probe: []string{"call", "socket", "2", "0x80801", "0"}, readOnly: "EPERM", write: "EPERM"},
	},
	"connect to a local socket (a container engine, an agent)": {
		{name: "socket unix datagram with other flags", probe: []string{"call", "socket", "1", "0x80802", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "connect to a named socket of another kind", probe: []string{"dial", "unixpacket", "@socket"}, free: "EPROTOTYPE", readOnly: "EPERM", write: "EPERM"},
	},
	"open sockets between its own processes": {
		{name: "socket unix with other flags", probe: []string{"call", "socket", "1", "0x80801", "0"}, readOnly: "ok", write: "ok"},
		{name: "socket unix of packets", probe: []string{"call", "socket", "1", "5", "0"}, readOnly: "ok", write: "ok"},
	},
	"use the shared memory, semaphores and message queues of others": {
		{name: "remove a message queue", probe: []string{"call", "msgctl", "0x7ffffff0", "0"}, free: "EINVAL", readOnly: "EPERM", write: "EPERM"},
		{name: "write to shared memory by a descriptor", probe: []string{"reopen to write", "@shm"}, readOnly: "EACCES", write: "EACCES"},
	},
	"signal, trace or read the server": {
		{name: "signal the server by a descriptor", probe: []string{"signal by descriptor", "@pid"}, readOnly: "ENOSYS|EPERM", write: "ENOSYS|EPERM"},
		{name: "queue a signal for the server", probe: []string{"call", "rt_sigqueueinfo", "@pid", "0", "words:0,0xffffffff,0,0,0,0,0,0,0,0,0,0,0,0,0,0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "take a descriptor of the server", probe: []string{"take a descriptor", "@pid"}, free: "ok|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "signal the launcher", probe: []string{"signal", parent}, readOnly: "EPERM", write: "EPERM"},
		{name: "signal the launcher's threads", probe: []string{"signal threads", parent}, readOnly: "EPERM", write: "EPERM"},
		{name: "trace the launcher", probe: []string{"ptrace", parent}, free: "ok|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "read the launcher's memory", probe: []string{"read memory", parent}, free: "ok|EACCES|EPERM", readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "read its threads' memory, of the launcher", probe: []string{"threads' memory", parent}, free: "ok|EACCES|EPERM", readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "read the launcher's environment", probe: []string{"environ", parent}, free: "ok|EACCES|EPERM", readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "compare what the server holds", probe: []string{"call", "kcmp", "@pid", "@pid", "1"}, free: "ok|EPERM|ENOSYS", readOnly: "EPERM", write: "EPERM"},
	},
	"signal, trace or read your other processes": {
		{name: "signal another process by a descriptor", probe: []string{"signal by descriptor", "@other"}, readOnly: "ENOSYS|EPERM", write: "ENOSYS|EPERM"},
		{name: "queue a signal for another process", probe: []string{"call", "rt_sigqueueinfo", "@other", "0", "words:0,0xffffffff,0,0,0,0,0,0,0,0,0,0,0,0,0,0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "take a descriptor of another process", probe: []string{"take a descriptor", "@other"}, free: "ok|EPERM", readOnly: "EPERM", write: "EPERM"},
	},
	"change the priority, limits or processors of other processes": {
		{name: "priority of all processes of a user", probe: []string{"call", "setpriority", "2", "54321", "0"}, free: "ESRCH", readOnly: "EPERM", write: "EPERM"},
		{name: "disk priority of all processes of a user", probe: []string{"call", "ioprio_set", "3", "54321", "0x4000"}, free: "ESRCH", readOnly: "EPERM", write: "EPERM"},
	},
	"put words into a terminal": {
		{name: "TIOCSTI on another descriptor", probe: []string{"call", "ioctl", "1", "0x5412"}, free: "ENOTTY", readOnly: "EPERM", write: "EPERM"},
		{name: "TIOCLINUX with other high bits", probe: []string{"call", "ioctl", "0", "0x10000541c", "words:0"}, free: "ENOTTY", readOnly: "EPERM", write: "EPERM"},
	},
	"gain privileges by a setuid program": {
		{name: "program of root's again", probe: []string{"setuid", "/proc/self/root@suid"}, free: "0 instead of 65534", guards: true, user: true, readOnly: "ok", write: "ok"},
		{name: "program of root's by another folder", probe: []string{"setuid", "/usr/..@suid"}, free: "0 instead of 65534", guards: true, user: true, readOnly: "ok", write: "ok"},
	},
	"mount, make namespaces, use bpf, io_uring or keyrings": {
		{name: "a new file system", probe: []string{"call", "fsopen", "0", "0"}, free: "EFAULT|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "take a mount", probe: []string{"call", "open_tree", "-1", "0", "1"}, free: "EFAULT|EPERM|EBADF", readOnly: "EPERM", write: "EPERM"},
		{name: "another root", probe: []string{"call", "pivot_root", "0", "0"}, free: "EFAULT|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "page faults of its own", probe: []string{"call", "userfaultfd", "0x10"}, free: "EINVAL|EPERM|ENOSYS", readOnly: "EPERM", write: "EPERM"},
		{name: "events of the processor", probe: []string{"call", "perf_event_open", "0", "0", "0", "0", "0"}, free: "EFAULT|EACCES|EPERM|EINVAL", readOnly: "EPERM", write: "EPERM"},
		{name: "add a key", probe: []string{"call", "add_key", "0", "0", "0", "0", "0"}, free: "EFAULT|EINVAL|ENOSYS", readOnly: "EPERM", write: "EPERM"},
	},
	"see variables with KEY, SECRET or TOKEN in the name": {
		{name: "a secret in lower case", probe: []string{"variable", "some_api_key_file", "false "}, guards: true, readOnly: "ok", write: "ok"},
		{name: "a secret in the middle of a name", probe: []string{"variable", "MYSECRETS", "false "}, guards: true, readOnly: "ok", write: "ok"},
	},
}
