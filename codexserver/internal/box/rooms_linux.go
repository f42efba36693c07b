//go:build amd64 || arm64

package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/paths"
	"golang.org/x/sys/unix"
)

// A command has rooms of its own, see [run.Rooms]: its processes, its System V IPC, its terminals, its shared memory and,
// without network access, its network are not the machine's. So what stays inside need not be refused. Landlock and the
// filter hold there as they do without. Root needs no user namespace for that, and keeps what it may do with files.

// RoomsAvailable returns why commands on this system cannot have rooms, which [Confinement.Apply] then does without, or nil.
func RoomsAvailable() error { return roomsLacking() }

// roomsLacking furnishes rooms once, for a command that does nothing.
var roomsLacking = sync.OnceValue(func() error {
	if err := Available(); err != nil {
		return err
	}
	if names := hiddenInProc(); os.Getuid() == 0 && len(names) > 0 {
		return roomless(fmt.Errorf("%s is hidden here, and would not be in a /proc of its own", names[0]))
	}
	ruleset, err := newRuleset(landlockABI(), 0, nil, nil)
	if err != nil {
		return err
	}
	defer ruleset.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var starter run.Starter
	defer starter.Close()
	cmd := &exec.Cmd{Args: []string{"trial"}, ExtraFiles: []*os.File{ruleset}}
	if _, err := starter.Start(ctx, cmd, plan{limits: rooms}.words()); err != nil {
		return roomless(err)
	}
	return nil
})

// hiddenInProc returns what is mounted over parts of /proc, as containers do. What systems mount for all is none.
func hiddenInProc() (names []string) {
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for _, name := range mountPoints(string(b)) {
		if strings.HasPrefix(name, "/proc/") && name != "/proc/sys/fs/binfmt_misc" {
			names = append(names, name)
		}
	}
	return names
}

// roomless adds to an error what would help.
func roomless(err error) error {
	remedy := "in a container, allow unshare and mount, as --security-opt seccomp=unconfined --security-opt " +
		"apparmor=unconfined does"
	for file, r := range map[string]struct{ bad, remedy string }{
		"kernel/apparmor_restrict_unprivileged_userns": {"1",
			"install the AppArmor profile of docs/troubleshooting.md"},
		"kernel/unprivileged_userns_clone": {"0", "set kernel.unprivileged_userns_clone=1 by sysctl"},
		"user/max_user_namespaces":         {"0", "set user.max_user_namespaces to 10000 by sysctl"},
	} {
		if b, failed := os.ReadFile("/proc/sys/" + file); failed == nil && strings.TrimSpace(string(b)) == r.bad &&
			os.Getuid() != 0 {
			remedy = r.remedy
		}
	}
	return fmt.Errorf("commands have no network, terminals and shared memory of their own: %w; %s", err, remedy)
}

// plan is how the launcher confines a command.
type plan struct {
	limits  limits
	files   uint64 // see [run.OriginalFiles]
	keepShm bool   // the command works in the machine's /dev/shm
	fixed   []fixed
	absent  []string // names that must not come to be there
	layered layered
}

// words returns the words for a launcher.
func (p plan) words() string {
	if p.limits&rooms == 0 {
		return strconv.Itoa(int(p.limits))
	}
	words := fmt.Sprintf("%d\n%d\n%t\n%q\n%d\n%d", p.limits, p.files, p.keepShm, p.layered.folder, p.layered.free,
		p.layered.limit)
	for _, m := range p.fixed {
		words += fmt.Sprintf("\n%s %q", m.kind, m.path)
	}
	for _, name := range p.absent {
		words += fmt.Sprintf("\nabsent %q", name)
	}
	for _, cache := range p.layered.caches {
		words += fmt.Sprintf("\nlayer %q", cache)
	}
	return words
}

func readPlan(words string) (p plan, err error) {
	lines := strings.Split(words, "\n")
	bits, err := strconv.ParseUint(lines[0], 10, 8)
	if p.limits = limits(bits); err != nil || p.limits&rooms == 0 {
		return p, err
	}
	const members = 6
	if len(lines) < members {
		return p, errors.New("too few words")
	}
	var errs [4]error
	p.files, err = strconv.ParseUint(lines[1], 10, 64)
	p.keepShm = lines[2] == "true"
	p.layered.folder, errs[0] = strconv.Unquote(lines[3])
	p.layered.free, errs[1] = strconv.ParseInt(lines[4], 10, 64)
	p.layered.limit, errs[2] = strconv.ParseInt(lines[5], 10, 64)
	for _, line := range lines[members:] {
		what, quoted, _ := strings.Cut(line, " ")
		path, failed := strconv.Unquote(quoted)
		switch what {
		case "layer":
			p.layered.caches = append(p.layered.caches, path)
		case "absent":
			p.absent = append(p.absent, path)
		default:
			p.fixed = append(p.fixed, fixed{path, what})
		}
		errs[3] = errors.Join(errs[3], failed)
	}
	err = errors.Join(append(errs[:], err)...)
	return p, err
}

// furnisher makes the list of steps by which rooms are furnished.
type furnisher struct {
	plan
	ruleset int // of Landlock
	steps   []run.Step
}

func (f *furnisher) add(name string, call uintptr, args ...any) {
	f.steps = append(f.steps, run.Step{Name: name, Call: call, Args: args})
}

const (
	atCwd   = ^uintptr(0) - 99 // AT_FDCWD
	pathFD  = 60               // a descriptor of a path
	proxyFD = 61               // the listener at the proxy's address
	treeFD  = 62               // a mount before it is put there
	maskFD  = 64               // the mount over a denied file, of which others are copies
	fsFD    = 63               // a file system before it is one
	openFD  = 200              // the first of those of what is open, see [furnisher.lookUp]
	shmSize = "size=1g,mode=1777"
)

// rooms returns the rooms of a command whose ruleset is a descriptor of the launcher. The server's end of the connection
// by which it gets the proxy's listener is the next one.
func (p plan) rooms(ruleset int) (*run.Rooms, error) {
	f := &furnisher{plan: p, ruleset: ruleset}
	flags := uintptr(unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID)
	if os.Getuid() != 0 {
		flags |= unix.CLONE_NEWUSER
	}
	if p.limits&network == 0 {
		flags |= unix.CLONE_NEWNET
		f.loopback()
	}
	if p.limits&hosts != 0 {
		f.offerProxy(ruleset + 1)
	}
	err := f.mounts()
	f.dropCapabilities()
	f.add("no new privileges", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	filter := filter(p.limits&^hosts, 0)
	prog := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	last := []run.Step{
		{Name: "landlock", Call: unix.SYS_LANDLOCK_RESTRICT_SELF, Args: []any{ruleset, 0}},
		{Name: "seccomp", Call: unix.SYS_SECCOMP, Args: []any{unix.SECCOMP_SET_MODE_FILTER, 0, unsafe.Pointer(prog)}},
	}
	made := &run.Rooms{Flags: flags, First: f.steps, Last: last, Files: p.files}
	if err == nil && len(p.fixed)+len(p.absent)+len(p.layered.caches) > 0 {
		news, failed := watchFor(p.absent) // before the command begins
		made.Watch, made.After = func(pid int) string { return p.watch(pid, news) }, news.next
		err = failed
	}
	return made, err
}

// loopback begins the only interface of the network.
func (f *furnisher) loopback() {
	request := &[40]byte{'l', 'o'} // struct ifreq
	request[16] = unix.IFF_UP | unix.IFF_RUNNING
	f.add("socket", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	f.add("loopback", unix.SYS_IOCTL, run.Before, unix.SIOCSIFFLAGS, unsafe.Pointer(request))
}

// offerProxy listens at the proxy's address, and gives the server the socket.
func (f *furnisher) offerProxy(server int) {
	const backlog = 128
	name, byteToSend := &[16]byte{unix.AF_INET, 0, proxyPort >> 8, proxyPort & 0xff, 127, 0, 0, 1}, new(byte)
	rights := unix.UnixRights(proxyFD)
	message := &unix.Msghdr{Iov: &unix.Iovec{Base: byteToSend, Len: 1}, Iovlen: 1, Control: &rights[0]}
	message.SetControllen(len(rights))
	f.add("socket for the proxy", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	f.add("keep the socket", unix.SYS_DUP3, run.Before, proxyFD, unix.O_CLOEXEC)
	f.add("the proxy's address", unix.SYS_BIND, proxyFD, unsafe.Pointer(name), len(name))
	f.add("listen for the proxy", unix.SYS_LISTEN, proxyFD, backlog)
	f.add("hand over the socket", unix.SYS_SENDMSG, server, unsafe.Pointer(message), unix.MSG_NOSIGNAL)
	f.add("close the socket", unix.SYS_CLOSE, proxyFD)
}

// mounts covers what is the machine's.
func (f *furnisher) mounts() error {
	folder, err := os.Readlink("/proc/self/cwd")
	if err != nil {
		return err
	}
	all := handledBy(landlockABI())
	read := uint64(unix.LANDLOCK_ACCESS_FS_READ_FILE)
	if f.limits&closed != 0 {
		all, read = all|closedRights, read|closedRights
	}
	mount := func(what, where, kind string, flags int, data string) {
		f.add("mount "+where, unix.SYS_MOUNT, what, where, kind, flags, data)
	}
	const safe = unix.MS_NOSUID | unix.MS_NOEXEC
	mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	// Queues are files of a file system that every namespace has, mounted or not.
	queues := len(f.steps)
	mount("mqueue", shmFolder, "mqueue", safe|unix.MS_NODEV, "")
	f.allow(shmFolder, all)
	f.add("unmount "+shmFolder, unix.SYS_UMOUNT2, shmFolder, unix.MNT_DETACH)
	f.steps[queues].Optional = len(f.steps) - queues // not all kernels have it
	f.layers()                                       // which finds its descriptors in the machine's /proc
	mount("devpts", "/dev/pts", "devpts", safe, "newinstance,ptmxmode=0666,mode=0600")
	if !f.keepShm {
		mount("tmpfs", shmFolder, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, shmSize)
	}
	mount("proc", "/proc", "proc", safe|unix.MS_NODEV, "")
	f.fix()
	f.add("enter "+folder, unix.SYS_CHDIR, folder)
	f.allow("/proc", read)
	if !f.keepShm {
		f.allow(shmFolder, all&^deviceNodes)
	}
	f.allow("/dev/pts", all&(fileRights|unix.LANDLOCK_ACCESS_FS_READ_DIR))
	for _, path := range []string{"/dev/ptmx", "/dev/tty"} {
		f.allow(path, all&fileRights)
	}
	return nil
}

const shmFolder = "/dev/shm"

// allow adds a rule of Landlock for what the server does not see.
func (f *furnisher) allow(path string, rights uint64) {
	name := "allow " + path
	f.add(name, unix.SYS_OPENAT, atCwd, path, unix.O_PATH|unix.O_CLOEXEC, 0)
	f.keep(name, pathFD)
	f.rule(name, pathFD, rights)
}

// keep gives the descriptor of the step before a number.
func (f *furnisher) keep(name string, fd int) {
	f.add(name, unix.SYS_DUP3, run.Before, fd, unix.O_CLOEXEC)
}

// rule allows what is below a descriptor.
func (f *furnisher) rule(name string, fd int, rights uint64) {
	attr := &unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	f.add(name, unix.SYS_LANDLOCK_ADD_RULE, f.ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, unsafe.Pointer(attr), 0)
}

// dropCapabilities drops what a new user namespace gives, and of root what it may do besides files, for good.
func (f *furnisher) dropCapabilities() {
	header, sets := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &[2]unix.CapUserData{}
	dropped := prying
	if os.Getuid() != 0 {
		dropped = nil
		for capability := range unix.CAP_LAST_CAP + 1 {
			dropped = append(dropped, capability)
		}
	} else if err := unix.Capget(header, &sets[0]); err != nil {
		*sets = [2]unix.CapUserData{}
	}
	for _, capability := range dropped {
		if known(capability) {
			f.add("bounding set", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		}
		dropFrom(sets, capability)
	}
	f.add("capabilities", unix.SYS_CAPSET, unsafe.Pointer(header), unsafe.Pointer(sets))
}

// known reports whether the kernel knows a capability.
func known(capability int) bool {
	_, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(capability), 0, 0, 0)
	return err == nil
}

// inShm reports whether a command works in the machine's /dev/shm, which is then not covered: for Landlock all that is
// mounted below the command's own would be writable.
func inShm(folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return paths.Below(folder, shmFolder) })
}
