package box_test

// row is the result of a command's attempt: "ok" or the name of an error
// number, "a|b" where both are right. Without a sandbox it must be "ok", or free, so that
// each row can fail.
//
// In a probe @pid is the server, @parent the launcher, @other another process of the user. @tcp, @socket and
// @abstract are listeners of the server. @terminal, @shm, @key, @memory and @queue belong
// to other processes. @suid is a setuid program of root.
type row struct {
	name     string
	probe    []string
	free     string // "ok" when empty
	readOnly string // in the mode read-only
	write    string // in the mode workspace-write
	hosts    string // in workspace-write with a network by the host; as in write when empty
	online   string // in workspace-write with network access; not tried when empty
	inside   string // with rooms, but with network access; as without when empty
	outside  bool   // is not tried with rooms
	// guards reports that the probe prints ok when it was denied.
	guards bool
	// user rows do not apply to root, root rows only to root.
	user, root bool
}

// noInitial is what root may do, but for root of a user namespace alone.
const noInitial = "ok|EPERM"

// kind are rows with one name in SECURITY.md.
type kind struct {
	name string
	rows []row
}

// kinds are the rows by their name in SECURITY.md. Those without a name are not in it.
var kinds = []kind{
	{"read any file that you can read", []row{
		{name: "read outside", probe: []string{"read", "/etc/passwd"}, readOnly: "ok", write: "ok"},
		{name: "read in the workspace", probe: []string{"read", "file"}, readOnly: "ok", write: "ok"},
		{name: "list /dev", probe: []string{"list", "/dev"}, readOnly: "ok", write: "ok"},
		{name: "read outside by a descriptor", probe: []string{"call", "openat", "-100", "link:../outside/file", "0x900", "0"}, readOnly: "ok", write: "ok"},
		{name: "read a program of the system by a descriptor", probe: []string{"call", "openat", "-100", "link:/bin/sh", "0x900", "0"}, readOnly: "ok", write: "ok"},
	}},
	{"read a terminal, a disk or another device", []row{
		{name: "read another terminal", inside: "EIO|ENOENT", probe: []string{"call", "openat", "-100", "text:@terminal", "0x900", "0"}, readOnly: "EACCES", write: "EACCES"},
		{name: "read another terminal by /proc", inside: "EIO|ENOENT", probe: []string{"call", "openat", "-100", "text:/proc/self/root@terminal", "0x900", "0"}, readOnly: "EACCES", write: "EACCES"},
		{name: "read the kernel's messages", probe: []string{"call", "openat", "-100", "text:/dev/kmsg", "0x900", "0"}, free: "ok|EPERM", readOnly: "EACCES", write: "EACCES", root: true},
		{name: "read a terminal by a descriptor", inside: "EIO|ENOENT", probe: []string{"call", "openat", "-100", "link:@terminal", "0x900", "0"}, readOnly: "EACCES", write: "EACCES"},
	}},
	{"write in the working folder, `/tmp`, `$TMPDIR`", []row{
		{name: "write in the workspace", probe: []string{"write", "new"}, readOnly: "EACCES", write: "ok"},
		{name: "make a folder in the workspace", probe: []string{"mkdir", "new"}, readOnly: "EACCES", write: "ok"},
		{name: "remove in the workspace", probe: []string{"remove", "file"}, readOnly: "EACCES", write: "ok"},
		{name: "rename in the workspace", probe: []string{"rename", "file", "sub/file"}, readOnly: "EACCES|EXDEV", write: "ok"},
		{name: "write in the workspace by a descriptor", probe: []string{"call", "openat", "-100", "link:file", "1", "0"}, readOnly: "EACCES", write: "ok"},
		{name: "create in the workspace by a descriptor", probe: []string{"call", "openat", "-100", "link:.//new", "0x41", "0600"}, readOnly: "EACCES", write: "ok"},
	}},
	{"write, create, remove, rename, truncate elsewhere", []row{
		{name: "write outside", probe: []string{"write", "../outside/new"}, readOnly: "EACCES", write: "EACCES"},
		{name: "append to a file outside", probe: []string{"call", "openat", "-100", "text:../outside/file", "0x401", "0"}, readOnly: "EACCES", write: "EACCES"},
		{name: "truncate outside", probe: []string{"truncate", "../outside/file"}, readOnly: "EACCES", write: "EACCES"},
		{name: "truncate while reading outside", probe: []string{"call", "openat", "-100", "text:../outside/file", "0x200", "0"}, readOnly: "EACCES", write: "EACCES"},
		{name: "make a folder outside", probe: []string{"mkdir", "../outside/new"}, readOnly: "EACCES", write: "EACCES"},
		{name: "remove outside", probe: []string{"remove", "../outside/file"}, readOnly: "EACCES", write: "EACCES"},
		{name: "remove a folder outside", probe: []string{"remove", "../outside/dir"}, readOnly: "EACCES", write: "EACCES"},
		{name: "move out", probe: []string{"rename", "file", "../outside/new"}, readOnly: "EACCES|EXDEV", write: "EACCES|EXDEV"},
		{name: "move in", probe: []string{"rename", "../outside/file", "new"}, readOnly: "EACCES|EXDEV", write: "EACCES|EXDEV"},
		{name: "symbolic link outside", probe: []string{"symlink", "x", "../outside/new"}, readOnly: "EACCES", write: "EACCES"},
		{name: "named pipe outside", probe: []string{"call", "mknodat", "-100", "text:../outside/new", "010666", "0"}, readOnly: "EACCES", write: "EACCES"},
		{name: "named socket outside", inside: "EPERM", probe: []string{"bind", "../outside/new"}, readOnly: "EACCES", write: "EACCES"},
		{name: "write through a symbolic link", probe: []string{"write", "symlink"}, readOnly: "EACCES", write: "EACCES"},
		{name: "write through a linked folder", probe: []string{"write", "dirlink/new"}, readOnly: "EACCES", write: "EACCES"},
		{name: "write through /proc/self/cwd", probe: []string{"write", "/proc/self/cwd/../outside/new"}, readOnly: "EACCES", write: "EACCES"},
		{name: "make a hard link to a file outside", probe: []string{"link", "../outside/file", "linked"}, readOnly: "EACCES|EXDEV", write: "EACCES|EXDEV"},
		{name: "make a hard link outside", probe: []string{"link", "file", "../outside/new"}, readOnly: "EACCES|EXDEV", write: "EACCES|EXDEV"},
		{name: "open by handle", probe: []string{"call", "open_by_handle_at", "-100", "words:8,0", "0"}, readOnly: "EPERM", write: "EPERM", root: true, free: "ESTALE|EOPNOTSUPP|EINVAL|EPERM"},
		{name: "make a device", probe: []string{"call", "mknodat", "-100", "text:device", "020666", "0x103"}, readOnly: "EACCES", write: "EACCES", free: noInitial, root: true},
		{name: "write to /proc", probe: []string{"call", "openat", "-100", "text:/proc/self/oom_score_adj", "0x401", "0"}, readOnly: "EACCES", write: "EACCES"},
		{name: "write to /proc/sys", probe: []string{"call", "openat", "-100", "text:/proc/sys/kernel/core_pattern", "0x401", "0"}, readOnly: "EACCES", write: "EACCES", root: true},
		{name: "write outside by a descriptor", probe: []string{"call", "openat", "-100", "link:../outside/file", "1", "0"}, readOnly: "EACCES", write: "EACCES"},
		{name: "truncate outside by a descriptor", probe: []string{"call", "truncate", "link:../outside/file", "0"}, readOnly: "EACCES", write: "EACCES"},
		{name: "create outside by a descriptor of the folder", probe: []string{"call", "openat", "-100", "link:../outside//new", "0x41", "0600"}, readOnly: "EACCES", write: "EACCES"},
		{name: "exchange a file with one outside", probe: []string{"call", "renameat2", "-100", "text:file", "-100", "text:../outside/file", "2"}, readOnly: "EACCES|EXDEV", write: "EACCES|EXDEV"},
		{name: "leave a device in the place of a file outside", probe: []string{"call", "renameat2", "-100", "text:../outside/file", "-100", "text:../outside/new", "4"}, root: true, readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
	}},
	{"change the hooks or the configuration of git in a writable folder, or put others in their place", []row{
		{name: "write into .git", inside: "EROFS|EACCES", probe: []string{"write", ".git/hooks/evil"}, readOnly: "EACCES", write: "ok"},
		{name: "move .git", inside: "EBUSY|EACCES|EXDEV", probe: []string{"rename", ".git", "git"}, readOnly: "EACCES|EXDEV", write: "ok"},
		{name: "exchange .git with another folder", inside: "EBUSY|EACCES|EXDEV", probe: []string{"call", "renameat2", "-100", "text:.git", "-100", "text:sub", "2"}, readOnly: "EACCES|EXDEV", write: "ok"},
		{name: "create in .git by a descriptor", inside: "EROFS|EACCES", probe: []string{"call", "openat", "-100", "link:.git/hooks//evil", "0x41", "0600"}, readOnly: "EACCES", write: "ok"},
	}},
	{"write into a `.git` elsewhere below, or `$CODEX_HOME`, in a writable folder, or put others in their place", []row{
		{name: "write into a .git below", probe: []string{"mkdir", "sub/.git"}, readOnly: "EACCES", write: "ok"},
		{name: "write into the configuration", probe: []string{"write", "home/config.toml"}, readOnly: "EACCES", write: "ok"},
		{name: "move the configuration", probe: []string{"rename", "home", "home2"}, readOnly: "EACCES|EXDEV", write: "ok"},
		{name: "exchange the configuration with another folder", probe: []string{"call", "renameat2", "-100", "text:home", "-100", "text:sub", "2"}, readOnly: "EACCES|EXDEV", write: "ok"},
	}},
	{"change the mode, owner, times or extended attributes of a file elsewhere", []row{
		{name: "chmod outside", probe: []string{"call", "fchmodat", "-100", "text:../outside/file", "0700"}, readOnly: "EPERM", write: "ok"},
		{name: "fchmod outside", probe: []string{"call", "fchmod", "file:../outside/file", "0600"}, readOnly: "EPERM", write: "ok"},
		{name: "fchmodat2 outside", probe: []string{"call", "fchmodat2", "-100", "text:../outside/file", "0600", "0"}, free: "ok|ENOSYS", readOnly: "EPERM", write: "ok|ENOSYS"},
		{name: "chmod outside, the old call", probe: []string{"call", "old chmod", "text:../outside/file", "0600"}, readOnly: "EPERM", write: "ok"},
		{name: "chown outside", probe: []string{"chown", "../outside/file"}, readOnly: "EPERM", write: "ok"},
		{name: "chown outside, a link itself", probe: []string{"call", "old lchown", "text:../outside/file", "-1", "-1"}, readOnly: "EPERM", write: "ok"},
		{name: "chown outside, an open file", probe: []string{"call", "fchown", "file:../outside/file", "-1", "-1"}, readOnly: "EPERM", write: "ok"},
		{name: "chown outside, the old call", probe: []string{"call", "old chown", "text:../outside/file", "-1", "-1"}, readOnly: "EPERM", write: "ok"},
		{name: "times outside", probe: []string{"times", "../outside/file"}, readOnly: "EPERM", write: "ok"},
		{name: "times outside, an open file", probe: []string{"call", "utimensat", "file:../outside/file", "0", "words:1,0,1,0", "0"}, readOnly: "EPERM", write: "ok"},
		{name: "times outside, the old call", probe: []string{"call", "old utime", "text:../outside/file", "0"}, readOnly: "EPERM", write: "ok"},
		{name: "times outside, the older call", probe: []string{"call", "old utimes", "text:../outside/file", "0"}, readOnly: "EPERM", write: "ok"},
		{name: "times outside, in a folder", probe: []string{"call", "old futimesat", "-100", "text:../outside/file", "0"}, readOnly: "EPERM", write: "ok"},
		{name: "extended attribute outside", probe: []string{"call", "setxattr", "text:../outside/file", "text:user.x", "text:x", "1", "0"}, free: "ok|ENOTSUP", readOnly: "EPERM", write: "ok|ENOTSUP"},
		{name: "extended attribute outside, a link itself", probe: []string{"call", "lsetxattr", "text:../outside/file", "text:user.x", "text:x", "1", "0"}, free: "ok|ENOTSUP", readOnly: "EPERM", write: "ok|ENOTSUP"},
		{name: "extended attribute outside, an open file", probe: []string{"call", "fsetxattr", "file:../outside/file", "text:user.x", "text:x", "1", "0"}, free: "ok|ENOTSUP", readOnly: "EPERM", write: "ok|ENOTSUP"},
		{name: "extended attribute outside, in a folder", probe: []string{"call", "setxattrat", "-100", "text:../outside/file", "0", "text:user.x", "words:0,0", "16"}, free: "ok|ENOTSUP|ENOSYS", readOnly: "EPERM", write: "ok|ENOTSUP|ENOSYS"},
		{name: "remove an extended attribute outside", probe: []string{"call", "removexattr", "text:../outside/file", "text:user.none"}, free: "ENODATA|ENOTSUP", readOnly: "EPERM", write: "ok|ENODATA|ENOTSUP"},
		{name: "remove an extended attribute outside, a link itself", probe: []string{"call", "lremovexattr", "text:../outside/file", "text:user.none"}, free: "ENODATA|ENOTSUP", readOnly: "EPERM", write: "ok|ENODATA|ENOTSUP"},
		{name: "remove an extended attribute outside, an open file", probe: []string{"call", "fremovexattr", "file:../outside/file", "text:user.none"}, free: "ENODATA|ENOTSUP", readOnly: "EPERM", write: "ok|ENODATA|ENOTSUP"},
		{name: "remove an extended attribute outside, in a folder", probe: []string{"call", "removexattrat", "-100", "text:../outside/file", "0", "text:user.none"}, free: "ENODATA|ENOTSUP|ENOSYS", readOnly: "EPERM", write: "ok|ENODATA|ENOTSUP|ENOSYS"},
	}},
	{"write through a hard link that lies in a writable folder", []row{
		{name: "write through a hard link", probe: []string{"write", "hardlink"}, readOnly: "EACCES", write: "ok"},
		{name: "write through a hard link by a descriptor", probe: []string{"call", "openat", "-100", "link:hardlink", "1", "0"}, readOnly: "EACCES", write: "ok"},
		{name: "truncate through a hard link by a descriptor", probe: []string{"call", "truncate", "link:hardlink", "0"}, readOnly: "EACCES", write: "ok"},
	}},
	{"make a program that runs with its owner's rights or with capabilities", []row{
		{name: "chmod to setuid", probe: []string{"call", "fchmodat", "-100", "text:file", "04755"}, readOnly: "EPERM", write: "EPERM"},
		{name: "chmod to setgid", probe: []string{"call", "fchmodat", "-100", "text:file", "02755"}, readOnly: "EPERM", write: "EPERM"},
		{name: "fchmod to setuid", probe: []string{"call", "fchmod", "file:file", "04755"}, readOnly: "EPERM", write: "EPERM"},
		{name: "fchmodat2 to setuid", probe: []string{"call", "fchmodat2", "-100", "text:file", "04755", "0"}, free: "ok|ENOSYS", readOnly: "EPERM", write: "EPERM"},
		{name: "chmod to setuid, the old call", probe: []string{"call", "old chmod", "text:file", "04755"}, readOnly: "EPERM", write: "EPERM"},
		{name: "open a setuid file", probe: []string{"call", "openat", "-100", "text:new", "0x41", "04755"}, readOnly: "EPERM", write: "EPERM"},
		{name: "open a setuid file, the old call", probe: []string{"call", "old open", "text:new", "0x41", "04755"}, readOnly: "EPERM", write: "EPERM"},
		{name: "open a setuid file with openat2", probe: []string{"call", "openat2", "-100", "text:new", "words:0x41,04755,0", "24"}, readOnly: "ENOSYS", write: "ENOSYS"},
		{name: "open a setuid file without a name", probe: []string{"call", "openat", "-100", "text:.", "0x410001", "04755"}, free: "ok|EINVAL", readOnly: "EPERM", write: "EPERM"},
		{name: "creat a setuid file", probe: []string{"call", "old creat", "text:new", "04755"}, readOnly: "EPERM", write: "EPERM"},
		{name: "mknod a setuid file", probe: []string{"call", "mknodat", "-100", "text:new", "0104755", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "mknod a setuid file, the old call", probe: []string{"call", "old mknod", "text:new", "0104755", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "give a program capabilities", probe: []string{"call", "setxattr", "text:file", "text:security.capability", "words:0x8002000001,0,0", "20", "0"}, readOnly: "EPERM", write: "EPERM", root: true},
	}},
	{"change a file's attributes, as `chattr` does", []row{
		{name: "FS_IOC_SETFLAGS outside", probe: []string{"call", "ioctl", "file:../outside/file", "0x40086602", "words:0"}, free: "ok|ENOTTY|ENOTSUP", readOnly: "EPERM", write: "EPERM"},
		{name: "FS_IOC_FSSETXATTR outside", probe: []string{"call", "ioctl", "file:../outside/file", "0x401c5820", "words:0,0,0,0"}, free: "ok|ENOTTY|ENOTSUP", readOnly: "EPERM", write: "EPERM"},
		{name: "file_setattr outside", probe: []string{"call", "file_setattr", "-100", "text:../outside/file", "words:0,0,0", "24", "0"}, free: "ok|ENOSYS|ENOTTY|ENOTSUP", readOnly: "EPERM", write: "EPERM"},
		{name: "make a file outside read-only for good", probe: []string{"call", "ioctl", "file:../outside/file", "0x40806685", "words:0x100000001,4096,0,0,0,0,0,0,0,0,0,0,0,0,0,0"}, free: "ok|ENOTSUP|ENOTTY|EINVAL|EROFS", readOnly: "EPERM", write: "EPERM"},
		{name: "FS_IOC_SETFLAGS of 32 bits", probe: []string{"call", "ioctl", "0", "0x40046602", "words:0"}, free: "ENOTTY", readOnly: "EPERM", write: "EPERM"},
	}},
	{"reach this machine's servers or the network, ask a name server", []row{
		{name: "socket packet", probe: []string{"call", "socket", "17", "3", "0"}, readOnly: "EPERM", write: "EPERM", free: noInitial, root: true},
		{name: "connect to loopback", inside: "ECONNREFUSED", probe: []string{"dial", "tcp", "@tcp"}, readOnly: "EPERM", write: "EPERM", online: "ok"},
		{name: "ask a name server", inside: "ENETUNREACH", free: "ok|ENETUNREACH", probe: []string{"dial", "udp", "192.0.2.1:53"}, readOnly: "EPERM", write: "EPERM"},
		{name: "socket of multipath TCP", probe: []string{"call", "socket", "2", "1", "262"}, free: "ok|EPROTONOSUPPORT|ENOPROTOOPT", readOnly: "EPERM", write: "EPERM"},
		{name: "socket of a virtual machine", probe: []string{"call", "socket", "40", "1", "0"}, free: "ok|EAFNOSUPPORT", readOnly: "EPERM", write: "EPERM"},
		{name: "socket of the kernel's ciphers", probe: []string{"call", "socket", "38", "5", "0"}, free: "ok|EAFNOSUPPORT", readOnly: "EPERM", write: "EPERM"},
	}},
	{"connect to a local socket (a container engine, an agent)", []row{
		{name: "socket unix", inside: "EPERM", probe: []string{"call", "socket", "1", "1", "0"}, readOnly: "ok", write: "ok"},
		{name: "socket unix of packets", inside: "EPERM", probe: []string{"call", "socket", "1", "5", "0"}, readOnly: "ok", write: "ok"},
		{name: "socket unix datagram", probe: []string{"call", "socket", "1", "2", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "socket pair datagram", probe: []string{"call", "socketpair", "1", "2", "0", "words:0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "connect to a named socket", probe: []string{"dial", "unix", "@socket"}, readOnly: "EPERM", write: "EPERM"},
		{name: "connect to an abstract socket", probe: []string{"dial", "unix", "@abstract"}, readOnly: "EPERM", write: "EPERM"},
		{name: "connect to a named socket of another kind", probe: []string{"dial", "unixpacket", "@socket"}, free: "EPROTOTYPE", readOnly: "EPERM", write: "EPERM"},
	}},
	{"listen at and connect to a loopback of its own", []row{
		{name: "socket inet", inside: "ok", probe: []string{"call", "socket", "2", "1", "0"}, readOnly: "EPERM", write: "EPERM", hosts: "ok", online: "ok"},
		{name: "socket inet datagram", inside: "ok", probe: []string{"call", "socket", "2", "2", "0"}, readOnly: "EPERM", write: "EPERM", online: "ok"},
		{name: "socket inet6", inside: "ok|EAFNOSUPPORT", probe: []string{"call", "socket", "10", "1", "0"}, free: "ok|EAFNOSUPPORT", readOnly: "EPERM", write: "EPERM"},
		{name: "socket netlink", inside: "ok", probe: []string{"call", "socket", "16", "3", "0"}, readOnly: "EPERM", write: "EPERM", online: "ok"},
		{name: "socket pair", probe: []string{"call", "socketpair", "1", "1", "0", "words:0"}, readOnly: "ok", write: "ok"},
	}},
	{"open a terminal, shared memory, semaphores and queues of its own", []row{
		{name: "new terminal", inside: "ok", probe: []string{"call", "openat", "-100", "text:/dev/ptmx", "2", "0"}, readOnly: "EACCES", write: "EACCES"},
		{name: "read a new terminal", inside: "ok", probe: []string{"call", "openat", "-100", "text:/dev/ptmx", "0x900", "0"}, readOnly: "EACCES", write: "EACCES"},
		{name: "read a new terminal by a descriptor", inside: "ok", probe: []string{"call", "openat", "-100", "link:/dev/ptmx", "0x900", "0"}, readOnly: "EACCES", write: "EACCES"},
		{name: "write to /dev/shm", inside: "ok", probe: []string{"mkdir", "/dev/shm/@unique"}, readOnly: "EACCES", write: "EACCES"},
		{name: "memory of its own", inside: "ok", probe: []string{"call", "shmget", "0", "4096", "01600"}, readOnly: "EPERM", write: "EPERM"},
		{name: "semaphores of its own", inside: "ok", probe: []string{"call", "semget", "0", "1", "01600"}, readOnly: "EPERM", write: "EPERM"},
		{name: "a message queue of its own", inside: "ok", probe: []string{"call", "mq_open", "text:@unique", "0102", "0600", "0"}, readOnly: "EPERM", write: "EPERM"},
	}},
	{"use the shared memory, semaphores and message queues of others", []row{
		{name: "read shared memory", inside: "ENOENT", probe: []string{"read", "@shm"}, readOnly: "ok", write: "ok"},
		{name: "shared memory", inside: "ENOENT", probe: []string{"call", "shmget", "@key", "0", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "attach shared memory", inside: "EINVAL", probe: []string{"call", "shmat", "@memory", "0", "0x1000"}, readOnly: "EPERM", write: "EPERM"},
		{name: "semaphores", inside: "ENOENT", probe: []string{"call", "semget", "@key", "0", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "message queue", inside: "ENOENT", probe: []string{"call", "msgget", "@key", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "message queue with a name", inside: "ENOENT", probe: []string{"call", "mq_open", "text:@queue", "0", "0", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "remove a message queue", inside: "EINVAL", probe: []string{"call", "msgctl", "0x7ffffff0", "0"}, free: "EINVAL", readOnly: "EPERM", write: "EPERM"},
		{name: "write to shared memory by a descriptor", inside: "ENOENT", probe: []string{"call", "openat", "-100", "link:@shm", "1", "0"}, readOnly: "EACCES", write: "EACCES"},
	}},
	{"signal, trace or read the server", []row{
		{name: "signal the server", inside: "ESRCH", probe: []string{"call", "kill", "@pid", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "signal the server's threads", inside: "no threads", probe: []string{"threads", "@pid", "call", "tgkill", "@pid", "TID", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "trace the server", probe: []string{"call", "ptrace", "0x4206", "@pid", "0", "0"}, free: "ok|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "read the server's memory", inside: "ENOENT", probe: []string{"call", "openat", "-100", "text:/proc/@pid/mem", "0", "0"}, free: "ok|EACCES", readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "read its threads' memory", inside: "no threads", probe: []string{"threads", "@pid", "memory", "/proc/@pid/task/TID/mem"}, free: "ok|EACCES", readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "copy the server's memory", probe: []string{"call", "process_vm_readv", "@pid", "0", "0", "0", "0", "0"}, free: "ok|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "read the server's environment", inside: "ENOENT", probe: []string{"read", "/proc/@pid/environ"}, free: "ok|EACCES", readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "signal the server by a descriptor", inside: "ESRCH", probe: []string{"call", "pidfd_send_signal", "process:@pid", "0", "0", "0"}, readOnly: "ENOSYS|EPERM", write: "ENOSYS|EPERM"},
		{name: "queue a signal for the server", inside: "ESRCH", probe: []string{"call", "rt_sigqueueinfo", "@pid", "0", "words:0,0xffffffff,0,0,0,0,0,0,0,0,0,0,0,0,0,0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "take a descriptor of the server", inside: "ESRCH", probe: []string{"call", "pidfd_getfd", "process:@pid", "2", "0"}, free: "ok|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "signal the launcher", probe: []string{"call", "kill", "@parent", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "signal the launcher's threads", probe: []string{"threads", "@parent", "call", "tgkill", "@parent", "TID", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "trace the launcher", probe: []string{"call", "ptrace", "0x4206", "@parent", "0", "0"}, free: "ok|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "read the launcher's memory", probe: []string{"call", "openat", "-100", "text:/proc/@parent/mem", "0", "0"}, free: "ok|EACCES|EPERM", readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "read its threads' memory, of the launcher", probe: []string{"threads", "@parent", "memory", "/proc/@parent/task/TID/mem"}, free: "ok|EACCES|EPERM", readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "read the launcher's environment", probe: []string{"read", "/proc/@parent/environ"}, free: "ok|EACCES|EPERM", readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "have the kernel signal it for a file", probe: []string{"call", "fcntl", "0", "15", "words:0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "have the kernel signal it for a socket", probe: []string{"call", "ioctl", "0", "0x8901", "words:0"}, free: "ENOTTY", readOnly: "EPERM", write: "EPERM"},
		{name: "compare what the server holds", probe: []string{"call", "kcmp", "@pid", "@pid", "1"}, free: "ok|EPERM|ENOSYS", readOnly: "EPERM", write: "EPERM"},
	}},
	{"signal, trace or read your other processes", []row{
		{name: "signal another process", inside: "ESRCH", probe: []string{"call", "kill", "@other", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "trace another process", probe: []string{"call", "ptrace", "0x4206", "@other", "0", "0"}, free: "ok|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "read another process's environment", inside: "ENOENT", probe: []string{"read", "/proc/@other/environ"}, readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "read its environment by a thread", inside: "no threads", probe: []string{"threads", "@other", "memory", "/proc/@other/task/TID/environ"}, readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "read another process's memory", inside: "ENOENT", probe: []string{"call", "openat", "-100", "text:/proc/@other/mem", "0", "0"}, free: "ok|EACCES", readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "see another process's files", inside: "no threads", probe: []string{"threads", "@other", "call", "readlinkat", "-100", "text:/proc/@other/task/TID/fd/0", "words:0", "8"}, readOnly: "EACCES|EPERM", write: "EACCES|EPERM"},
		{name: "signal another process by a descriptor", inside: "ESRCH", probe: []string{"call", "pidfd_send_signal", "process:@other", "0", "0", "0"}, readOnly: "ENOSYS|EPERM", write: "ENOSYS|EPERM"},
		{name: "queue a signal for another process", inside: "ESRCH", probe: []string{"call", "rt_sigqueueinfo", "@other", "0", "words:0,0xffffffff,0,0,0,0,0,0,0,0,0,0,0,0,0,0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "take a descriptor of another process", inside: "ESRCH", probe: []string{"call", "pidfd_getfd", "process:@other", "2", "0"}, free: "ok|EPERM", readOnly: "EPERM", write: "EPERM"},
	}},
	{"change the priority, limits or processors of other processes", []row{
		{name: "limits of another process", probe: []string{"call", "prlimit64", "@other", "4", "words:0,0", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "limits of the server", probe: []string{"call", "prlimit64", "@pid", "4", "words:0,0", "0"}, free: "ok|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "priority of another process", probe: []string{"call", "setpriority", "0", "@other", "19"}, readOnly: "EPERM", write: "EPERM"},
		{name: "processors of another process", probe: []string{"call", "sched_setaffinity", "@other", "8", "words:0xffffffffffffffff"}, readOnly: "EPERM", write: "EPERM"},
		{name: "scheduler of another process", probe: []string{"call", "sched_setscheduler", "@other", "0", "words:0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "scheduler's attributes of another process", probe: []string{"call", "sched_setattr", "@other", "words:56,0,19,0,0,0,0", "0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "scheduler's parameter of another process", probe: []string{"call", "sched_setparam", "@other", "words:0"}, readOnly: "EPERM", write: "EPERM"},
		{name: "disk priority of another process", probe: []string{"call", "ioprio_set", "1", "@other", "0x4006"}, readOnly: "EPERM", write: "EPERM"},
		{name: "priority of a group", probe: []string{"call", "setpriority", "1", "0", "19"}, readOnly: "EPERM", write: "EPERM"},
		{name: "disk priority of a group", probe: []string{"call", "ioprio_set", "2", "0", "0x4006"}, readOnly: "EPERM", write: "EPERM"},
	}},
	{"put words into a terminal", []row{
		{name: "TIOCSTI", probe: []string{"call", "ioctl", "0", "0x5412", "words:0"}, free: "ENOTTY", readOnly: "EPERM", write: "EPERM"},
		{name: "TIOCSTI with other high bits", probe: []string{"call", "ioctl", "0", "0x100005412", "words:0"}, free: "ENOTTY", readOnly: "EPERM", write: "EPERM"},
		{name: "TIOCLINUX", probe: []string{"call", "ioctl", "0", "0x541c", "words:0"}, free: "ENOTTY", readOnly: "EPERM", write: "EPERM"},
	}},
	{"gain privileges by a setuid program", []row{
		{name: "no new privileges", probe: []string{"returns", "1", "prctl", "39", "0", "0", "0", "0"}, free: "0 instead of 1", readOnly: "ok", write: "ok", guards: true},
		{name: "program of root's", probe: []string{"setuid", "@suid"}, free: "0 instead of 65534", readOnly: "ok", write: "ok", guards: true, user: true},
	}},
	{"mount, make namespaces, use bpf, io_uring or keyrings", []row{
		{name: "mount", probe: []string{"call", "mount", "text:x", "text:.", "text:none", "0", "0"}, free: "ENODEV|EPERM", readOnly: "EPERM", write: "EPERM", root: true},
		{name: "unmount what protects .git", probe: []string{"call", "umount2", "text:.git", "2"}, free: "EINVAL|EPERM", readOnly: "EPERM", write: "EPERM", root: true},
		{name: "clone into a user namespace", probe: []string{"call", "clone", "0x10000200", "0", "0", "0", "0"}, free: "EINVAL|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "io_uring", probe: []string{"call", "io_uring_setup", "4", "words:0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"}, free: "ok|ENOSYS|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "bpf", probe: []string{"call", "bpf", "0", "words:0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0", "48"}, free: "ok|EPERM|EINVAL", readOnly: "EPERM", write: "EPERM"},
		{name: "x32 call", probe: []string{"call", "x32"}, free: "ok|ENOSYS", readOnly: "ENOSYS", write: "ENOSYS"},
		{name: "keyring", probe: []string{"call", "keyctl", "0", "-3", "1"}, free: "ok|ENOSYS", readOnly: "EPERM", write: "EPERM"},
		{name: "host name", probe: []string{"call", "sethostname", "0", "-1"}, readOnly: "EPERM", write: "EPERM", free: "EINVAL|EPERM", root: true},
		{name: "unshare a user namespace", probe: []string{"call", "unshare", "0x10000000"}, free: "EINVAL|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "clone3", probe: []string{"call", "clone3", "0", "0"}, free: "EINVAL|ENOSYS|EPERM", readOnly: "ENOSYS", write: "ENOSYS"},
		{name: "join a namespace", probe: []string{"call", "setns", "-1", "0"}, free: "EBADF", readOnly: "EPERM", write: "EPERM"},
		{name: "a new file system", probe: []string{"call", "fsopen", "0", "0"}, free: "EFAULT|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "take a mount", probe: []string{"call", "open_tree", "-1", "0", "1"}, free: "EFAULT|EPERM|EBADF", readOnly: "EPERM", write: "EPERM"},
		{name: "another root", probe: []string{"call", "pivot_root", "0", "0"}, free: "EFAULT|EPERM", readOnly: "EPERM", write: "EPERM"},
		{name: "page faults of its own", probe: []string{"call", "userfaultfd", "0x10"}, free: "EINVAL|EPERM|ENOSYS", readOnly: "EPERM", write: "EPERM"},
		{name: "events of the processor", probe: []string{"call", "perf_event_open", "0", "0", "0", "0", "0"}, free: "EFAULT|EACCES|EPERM|EINVAL", readOnly: "EPERM", write: "EPERM"},
		{name: "add a key", probe: []string{"call", "add_key", "0", "0", "0", "0", "0"}, free: "EFAULT|EINVAL|ENOSYS", readOnly: "EPERM", write: "EPERM"},
	}},
	{"see variables with KEY, SECRET or TOKEN in the name", []row{
		{name: "secret in the environment", probe: []string{"variable", "SOME_TOKEN", "false "}, readOnly: "ok", write: "ok", guards: true},
	}},
	{"", []row{
		{name: "write to /dev/null", probe: []string{"write", "/dev/null"}, readOnly: "ok", write: "ok"},
		{name: "write to /dev/zero", probe: []string{"write", "/dev/zero"}, readOnly: "ok", write: "ok"},
		{name: "inherited descriptors", probe: []string{"descriptors"}, readOnly: "ok", write: "ok"},
		{name: "note in the environment", probe: []string{"variable", "CODEX_SANDBOX_NETWORK_DISABLED", "true 1"}, free: "false  instead of true 1", readOnly: "ok", write: "ok"},
		{name: "limits of itself", probe: []string{"call", "prlimit64", "0", "4", "words:0,0", "0"}, readOnly: "ok", write: "ok"},
		{name: "priority of itself", probe: []string{"call", "setpriority", "0", "0", "19"}, readOnly: "ok", write: "ok"},
		{name: "processors of itself", probe: []string{"call", "sched_setaffinity", "0", "8", "words:0xffffffffffffffff"}, readOnly: "ok", write: "ok"},
		{name: "disk priority of itself", probe: []string{"call", "ioprio_set", "1", "0", "0x4006"}, readOnly: "ok", write: "ok"},
		{name: "a file's flags", probe: []string{"call", "ioctl", "file:file", "0x80086601", "words:0"}, free: "ok|ENOTTY", readOnly: "ok|ENOTTY", write: "ok|ENOTTY"},
	}},
}
