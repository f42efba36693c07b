package box_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

var readOnly = protocol.SandboxPolicy{Mode: protocol.SandboxReadOnly}

// TestInterleaved runs confined and free commands at the same time. The confined ones
// cannot write; the others and the process itself are not affected.
func TestInterleaved(t *testing.T) {
	const workers = 7 // odd, so that each starts commands of both kinds
	each := 50
	if *whole {
		each = 1000
	}
	base := fixture(t)
	work, outside := filepath.Join(base, "work"), filepath.Join(base, "outside/dir")
	confinement := confine(t, readOnly, work)
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for n := worker; n < 2*each; n += workers {
				file, start, code := filepath.Join(outside, strconv.Itoa(n)), (*exec.Cmd).Start, 0
				if n%2 == 1 {
					start, code = confinement.Start, 2
				}
				cmd := exec.Command("/bin/sh", "-c", "echo x > "+file)
				cmd.Dir = work
				err := start(cmd)
				if err == nil {
					_ = cmd.Wait() // the code is checked
				}
				if _, missing := os.Stat(file); err != nil || cmd.ProcessState.ExitCode() != code || (missing == nil) != (code == 0) {
					t.Errorf("%d: %v %v, and the file: %v", n, cmd.ProcessState, err, missing)
				}
				must.Check(t, errors.Join(listen("tcp", "127.0.0.1:0"), os.WriteFile(file+"-own", nil, 0o666))) // this process
			}
		})
	}
	wg.Wait()
}

// TestDo confines a function of this process, and nothing else.
func TestDo(t *testing.T) {
	base := fixture(t)
	confinement := confine(t, readOnly, filepath.Join(base, "work"))
	path := filepath.Join(base, "work/new")
	create := func() error { return os.WriteFile(path, nil, 0o666) }
	must.Equal(t, "confined", true, os.IsPermission(confinement.Do(create)))
	must.Check(t, create())
}

// TestSwappedRoot replaces a root, or a folder above it, after the root was judged and before the command starts. The
// command may write only to the folder that was judged, or does not run.
func TestSwappedRoot(t *testing.T) {
	for _, swapped := range []string{"work/a/root", "work/a"} {
		t.Run(swapped, func(t *testing.T) {
			base := tree(t, "work/a/root/", "outside/root/")
			root := filepath.Join(base, "work/a/root")
			c := confine(t, write(root), filepath.Join(base, "work"))
			place, outside := filepath.Join(base, swapped), filepath.Join(base, "outside")
			if swapped == "work/a/root" {
				outside = filepath.Join(outside, "root")
			}
			must.OK(t, os.Rename(place, place+"-before"), os.Symlink(outside, place))
			res := ran(t, run.Spec{
				Argv: []string{"sh", "-c", "echo x > " + root + "/new"}, Dir: base, Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c,
			})
			if _, err := os.Stat(filepath.Join(base, "outside/root/new")); res.ExitCode == 0 || err == nil {
				t.Errorf("it wrote outside: %d %q", res.ExitCode, res.Aggregated)
			}
		})
	}
}

// TestCapabilities starts a command as root with network access. It keeps its rights over
// files, and loses those over the machine, its network and its log.
func TestCapabilities(t *testing.T) {
	files := uint64(1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER |
		1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_NET_BIND_SERVICE |
		1<<unix.CAP_NET_BROADCAST | 1<<unix.CAP_IPC_LOCK | 1<<unix.CAP_IPC_OWNER | 1<<unix.CAP_SYS_CHROOT |
		1<<unix.CAP_MKNOD | 1<<unix.CAP_LEASE | 1<<unix.CAP_AUDIT_WRITE | 1<<unix.CAP_WAKE_ALARM | 1<<unix.CAP_BLOCK_SUSPEND |
		1<<unix.CAP_AUDIT_READ)
	policy := write("/nowhere")
	policy.NetworkAccess = true
	c := confine(t, policy, "/")
	res := ran(t, run.Spec{Argv: []string{"/bin/cat", "/proc/self/status"}, Dir: "/", Confinement: c})
	_, after, found := strings.Cut(res.Stdout, "CapPrm:")
	has, err := strconv.ParseUint(strings.Fields(after + " none")[0], 16, 64)
	if !found || err != nil {
		t.Fatalf("%v: %+v", err, res)
	}
	must.Equal(t, "the capabilities of the command that it may not have", uint64(0), has&^files)
}

// TestLimitOfProcesses checks that a command gets fewer processes than the server may have, and cannot get more.
func TestLimitOfProcesses(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil || own.Cur < 4000 {
		t.Skipf("this process may have %d processes: %v", own.Cur, err)
	}
	less := unix.Rlimit{Cur: 4000, Max: own.Max}
	must.OK(t, unix.Setrlimit(unix.RLIMIT_NPROC, &less))
	defer unix.Setrlimit(unix.RLIMIT_NPROC, &own)
	res := ran(t, run.Spec{
		Argv: []string{"bash", "-c", `until [ $(ulimit -Su) = 3744 ]; do :; done; ulimit -Su 4000 2> /dev/null; ulimit -Su`},
		Dir:  "/", Env: []string{"PATH=/usr/bin:/bin"}, Confinement: confine(t, readOnly, "/"),
	})
	must.Equal(t, "the limit", "3744\n", res.Aggregated)
}

// TestDenied names which failures are denials, and what would let a command do what its sandbox stopped.
func TestDenied(t *testing.T) {
	home := boxtest.Folder(t)
	t.Setenv("HOME", home)
	boxtest.Lay(t, home, "work/file", "outside/file", ".cache/go-build/1f/", ".npm/_logs/", "go/pkg/")
	const (
		no      = "no"
		names   = "; writable_roots of [sandbox_workspace_write] can name "
		network = "; network_access of [sandbox_workspace_write] gives commands the network"
	)
	for _, tt := range []struct {
		code   int
		online bool
		line   string // @ is the home
		want   string // of the words, "no" if it is no denial
	}{
		{1, false, "touch: cannot touch 'x': Permission denied", ""},
		{1, false, "bash: line 1: x: Permission denied", ""},
		{1, false, "mkdir ../../x: permission denied", ""},
		{1, false, "bash: line 1: ../outside/x: Permission denied", names + "@/outside"},
		{1, false, "cp: cannot create regular file '@/outside/x': Read-only file system", names + "@/outside"},
		{1, false, "EACCES: permission denied, open '@/outside/file'", names + "@/outside"},
		{1, false, "open @/.cache/go-build/1f/1fab-a: permission denied", names + "@/.cache/go-build"},
		{1, false, "failed to initialize build cache at @/.cache/go-build: mkdir @/.cache/go-build/00: permission denied", names + "@/.cache/go-build"},
		{1, false, "npm error code EACCES: permission denied, open '@/.npm/_logs/new'", names + "@/.npm"},
		{1, false, "go: writing go.mod cache: mkdir @/go/pkg/mod: read-only file system", names + "@/go"},
		{101, false, `Error: Os { code: 13, kind: PermissionDenied, message: "Permission denied" }`, ""},
		{2, false, "PermissionError: [Errno 1] Operation not permitted", ""},
		{126, false, "bash: line 1: ./file: Permission denied", no}, // a script that may not be run
		{1, false, "tee: /nowhere/at/all: Permission denied", no},   // nobody may write it
		{128, false, "fatal: unable to access 'https://example.com/': Could not resolve host: example.com", network},
		{128, true, "fatal: unable to access 'https://example.com/': Could not resolve host: example.com", no},
		{1, false, "assertion failed: got 'a', want 'b'", no},
		{127, false, "sh: nope: not found", no},
		{0, false, "warning: '../outside/x': Permission denied", no},
		{run.TimeoutExitCode, false, "'../outside/x': permission denied", no},
	} {
		policy, line := write(), strings.ReplaceAll(tt.line, "@", home)
		policy.NetworkAccess = tt.online
		want := "the sandbox stopped it: " + line + strings.ReplaceAll(tt.want, "@", home)
		if tt.want == no {
			want = ""
		}
		c, res, text := confine(t, policy, home+"/work"), run.Result{ExitCode: tt.code, TimedOut: tt.code == run.TimeoutExitCode}, "one\n"+line+"\nlast\n"
		for _, stream := range []*string{&res.Stdout, &res.Stderr} {
			*stream = text
			must.Equal(t, tt.line, want, c.Denied(res))
			*stream = ""
		}
	}
}

// TestDeniedMessages judges messages of the programs on this machine.
func TestDeniedMessages(t *testing.T) {
	base := fixture(t)
	dir := filepath.Join(base, "work")
	processes := boxtest.Starter(t)
	c := confine(t, write(), dir)
	for script, want := range map[string]bool{
		"echo x > ../outside/new": true, "touch ../outside/new": true, "cp file ../outside/new": true, "echo x > new && exit 3": false,
		"cat missing": false, "./file": false,
	} {
		res, err := processes.Run(t.Context(), run.Spec{Argv: []string{"bash", "-c", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}, Confinement: c}, nil)
		must.OK(t, err)
		must.Equal(t, fmt.Sprintf("%q is denied, with %d and %q", script, res.ExitCode, res.Aggregated), want, c.Denied(res) != "")
	}
}

// TestOwnPrograms checks where a program that the server starts for itself may write, and that it has no network.
func TestOwnPrograms(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, tt := range []struct {
		folders string // @ is the base
		want    string // the files that the program could write, below the base
		chmod   bool   // it may change the mode of what is there
	}{
		{"", "", false}, {"@/one", "one\n", true}, {"@/one @/alias", "one\ntwo\n", true}, // the second is a link
	} {
		base := tree(t, "one/", "two/", "outside/", "alias -> @/two")
		c := must.Get((&box.Programs{}).Confine(strings.Fields(strings.ReplaceAll(tt.folders, "@", base))...))(t)
		res := ran(t, run.Spec{
			Argv: []string{"bash", "-c", "for d in one two outside; do { echo x >$d/file && echo $d; chmod 705 $d; } 2>/dev/null; done; exec 3<>/dev/tcp/127.0.0.1/" + port},
			Dir:  base, Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c, Timeout: time.Minute,
		})
		must.Equal(t, "the network is closed", 1, res.ExitCode)
		must.Equal(t, "written", tt.want, res.Stdout)
		info := must.Get(os.Stat(filepath.Join(base, "one")))(t)
		must.Equal(t, "the mode of a folder is changed", tt.chmod, info.Mode().Perm() == 0o705)
	}
	base := tree(t, "file")
	for _, name := range []string{"missing", "file"} {
		if _, err := (&box.Programs{}).Confine(filepath.Join(base, name)); err == nil {
			t.Errorf("%s is a writable folder", name)
		}
	}
}

// TestPrograms runs shells, git and a compiler, which the sandbox must not disturb.
func TestPrograms(t *testing.T) {
	program := must.Get(exec.LookPath("go"))(t)
	cache, dir := tree(t), tree(t, "tmp/")
	c := confine(t, write(cache), dir)
	env := []string{
		"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir + "/tmp",
		"GOCACHE=" + cache, "GOFLAGS=-buildvcs=false", "GOPROXY=off", "GOTOOLCHAIN=local", "GOENV=off",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
	for _, script := range []string{
		`set -e; for i in 1 2 3; do echo $i; done | sort -r | head -1 > out; test "$(cat < out)" = 3; cat <(echo x) >/dev/null`,
		`set -e; echo x | tee /dev/stderr > /dev/stdout; test -r /dev/fd/0; head -c 3 /dev/zero > /dev/null; mkdir -p d; install -m 755 out d/; cp -p d/out d/two; mv d/two three`,
		`set -e; ulimit -c 0; nice -n 1 true; taskset -p $$ > /dev/null`,
		`set -e; mkdir repo; cd repo; git init -q; seq 5000 > a; git add a; git commit -qm a; git grep -q --threads=4 4999; git gc -q; git status --short`,
		`set -e; mkdir lib; cd lib; printf 'module m\ngo 1.26\n' > go.mod; printf 'package m\nfunc F() int { return 7 }\n' > m.go
		go build . && test -n "$(ls $GOCACHE)"`,
	} {
		res := ran(t, run.Spec{Argv: []string{"bash", "-c", script}, Dir: dir, Env: env, Confinement: c, Timeout: 5 * time.Minute})
		must.Equal(t, script+": "+res.Aggregated, 0, res.ExitCode)
	}
}

// TestStartingThread keeps the thread that starts a command alive while the command tries
// to reach it. Landlock does not separate them, because both have the same domain.
func TestStartingThread(t *testing.T) {
	confinement := confine(t, readOnly, "/")
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, unix.SIGUSR1, unix.SIGUSR2)
	defer signal.Stop(signals)
	self := strconv.Itoa(os.Getpid())
	for _, probe := range []string{
		"memory /proc/SELF/task/TID/mem", "memory /proc/SELF/task/TID/environ", "call readlinkat -100 text:/proc/SELF/task/TID/fd/0 words:0 8", "call tgkill SELF TID 0",
		"call kill TID 0", "call rt_sigqueueinfo TID 0 words:0,0xffffffff,0,0,0,0,0,0,0,0,0,0,0,0,0,0", "call pidfd_send_signal process:TID,0x80 0 0 0",
		"call pidfd_send_signal file:/proc/TID 0 0 0", "owner TID",
	} {
		words, out := strings.Fields(strings.ReplaceAll(probeWord+" threads SELF "+probe, "SELF", self)), []byte(nil)
		must.Check(t, confinement.Do(func() (err error) {
			out, err = exec.Command("/proc/self/exe", words...).Output()
			return err
		}))
		switch string(out) {
		case "EACCES", "EPERM":
		case "ENOSYS": // pidfd_send_signal
		case "EINVAL": // before Linux 6.9 there are no such descriptors
		default:
			t.Errorf("%s: %s, want EACCES or EPERM", probe, out)
		}
	}
	// A signal that arrives before this one came from a command.
	must.OK(t, unix.Kill(os.Getpid(), unix.SIGUSR1))
	must.Equal(t, "the first signal", os.Signal(unix.SIGUSR1), <-signals)
}

// TestOtherCommands checks that a command cannot reach another one of the same confinement.
func TestOtherCommands(t *testing.T) {
	processes := boxtest.Starter(t)
	c := confine(t, readOnly, "/")
	other := &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "echo; read x"}, Dir: "/", Env: []string{"A_KEY=secret"}}
	in := must.Get(other.StdinPipe())(t)
	out := must.Get(other.StdoutPipe())(t)
	must.OK(t, c.Start(other))
	must.Get(out.Read(make([]byte, 1)))(t) // it runs
	for _, probe := range []string{
		"read /proc/OTHER/environ", "memory /proc/OTHER/mem", "call readlinkat -100 text:/proc/OTHER/fd/0 words:0 8", "call kill OTHER 0",
		"call ptrace 0x4206 OTHER 0 0", "call prlimit64 OTHER 4 words:0,0 0",
	} {
		words := strings.Fields(strings.ReplaceAll("/proc/self/exe "+probeWord+" "+probe, "OTHER", strconv.Itoa(other.Process.Pid)))
		spec := run.Spec{Argv: words, Dir: "/", Confinement: c}
		res, err := processes.Run(t.Context(), spec, nil)
		want := []string{"EACCES", "EPERM"}
		if box.RoomsAvailable() == nil { // the other one is not there
			want = append(want, "ENOENT", "ESRCH")
		}
		if err != nil || !slices.Contains(want, res.Aggregated) {
			t.Errorf("%s: %+v, %v, want one of %v", probe, res, err, want)
		}
	}
	in.Close()
	_ = other.Wait() // it fails: read found no line
}
