package box_test

import (
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
	const workers = 8
	each := 50
	if *whole {
		each = 1000
	}
	base := fixture(t)
	work, outside := filepath.Join(base, "work"), filepath.Join(base, "outside/dir")
	confinement := confine(t, readOnly, work)
	jobs := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for n := range jobs {
				script, start, want := fmt.Sprintf("echo x > %s/free-%d", outside, n), (*exec.Cmd).Start, 0
				if n%2 == 1 {
					script, start, want = fmt.Sprintf("echo x > %s/confined-%d", outside, n), confinement.Start, 2
				}
				cmd := exec.Command("/bin/sh", "-c", script)
				cmd.Dir = work
				err := start(cmd)
				if err == nil {
					_ = cmd.Wait() // the code is checked
				}
				if err != nil || cmd.ProcessState.ExitCode() != want {
					t.Errorf("%q: %v %v", script, cmd.ProcessState, err)
				}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Errorf("this process cannot listen: %v", err)
					continue
				}
				l.Close()
				if err := os.WriteFile(fmt.Sprintf("%s/own-%d", outside, n), nil, 0o666); err != nil {
					t.Errorf("this process cannot write: %v", err)
				}
			}
		})
	}
	for n := range 2 * each {
		jobs <- n
	}
	close(jobs)
	wg.Wait()
	for pattern, want := range map[string]int{"free-*": each, "confined-*": 0, "own-*": 2 * each} {
		found, err := filepath.Glob(filepath.Join(outside, pattern))
		if err != nil || len(found) != want {
			t.Errorf("%d files %s, want %d: %v", len(found), pattern, want, err)
		}
	}
}

// TestDo confines a function of this process, and nothing else.
func TestDo(t *testing.T) {
	base := fixture(t)
	confinement := confine(t, readOnly, filepath.Join(base, "work"))
	path := filepath.Join(base, "work/new")
	err := confinement.Do(func() error { return os.WriteFile(path, nil, 0o666) })
	if !os.IsPermission(err) {
		t.Errorf("confined: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Errorf("outside: %v", err)
	}
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

func TestDenied(t *testing.T) {
	base := fixture(t)
	dir := filepath.Join(base, "work")
	write, online := write(), write()
	online.NetworkAccess = true
	for _, tt := range []struct {
		name   string
		policy protocol.SandboxPolicy
		result run.Result
		want   bool
	}{
		{"file in a read-only workspace", readOnly, run.Result{ExitCode: 1, Stderr: "touch: cannot touch 'x': Permission denied\n"}, true},
		{"by the shell", readOnly, run.Result{ExitCode: 1, Stderr: "bash: line 1: x: Permission denied\n"}, true},
		{"file outside", write, run.Result{ExitCode: 1, Stderr: "bash: line 1: ../outside/x: Permission denied\n"}, true},
		{"file outside, read-only", write, run.Result{ExitCode: 1, Stderr: "cp: cannot create regular file '@/outside/x': Read-only file system\n"}, true},
		{"file outside, on the other stream", write, run.Result{ExitCode: 1, Stdout: "EACCES: permission denied, open '@/outside/file'\n"}, true},
		{"no file named", write, run.Result{ExitCode: 101, Stderr: "Error: Os { code: 13, kind: PermissionDenied, message: \"Permission denied\" }\nPermission denied (os error 13)\n"}, true},
		{"a script that may not be run", write, run.Result{ExitCode: 126, Stderr: "bash: line 1: ./file: Permission denied\n"}, false},
		{"a file that nobody may write", write, run.Result{ExitCode: 1, Stderr: "tee: /nowhere/at/all: Permission denied\n"}, false},
		{"a socket", write, run.Result{ExitCode: 2, Stderr: "PermissionError: [Errno 1] Operation not permitted\n"}, true},
		{"no network", write, run.Result{ExitCode: 128, Stdout: "fatal: unable to access 'https://example.com/': Could not resolve host: example.com\n"}, true},
		{"a network that fails", online, run.Result{ExitCode: 128, Stdout: "fatal: unable to access 'https://example.com/': Could not resolve host: example.com\n"}, false},
		{"a test that fails", write, run.Result{ExitCode: 1, Stderr: "assertion failed: got 'a', want 'b'\n"}, false},
		{"no such program", write, run.Result{ExitCode: 127, Stderr: "sh: nope: not found\n"}, false},
		{"success", write, run.Result{Stderr: "warning: '../outside/x': Permission denied\n"}, false},
		{"timeout", write, run.Result{ExitCode: run.TimeoutExitCode, TimedOut: true, Stderr: "'../outside/x': permission denied"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := confine(t, tt.policy, dir)
			tt.result.Stderr = strings.ReplaceAll(tt.result.Stderr, "@", base)
			tt.result.Stdout = strings.ReplaceAll(tt.result.Stdout, "@", base)
			must.Equal(t, tt.name, tt.want, c.Denied(tt.result) != "")
		})
	}
}

// TestDenial names what would let a command do what its sandbox stopped.
func TestDenial(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	work := filepath.Join(home, "work")
	for _, dir := range []string{work, home + "/.cache/go-build/1f", home + "/.npm/_logs", home + "/go/pkg"} {
		must.OK(t, os.MkdirAll(dir, 0o777))
	}
	const names, network = "; writable_roots of [sandbox_workspace_write] can name ", "; network_access of [sandbox_workspace_write] gives commands the network"
	for line, more := range map[string]string{
		"open @/.cache/go-build/1f/1fab-a: permission denied":                                                  names + "@/.cache/go-build",
		"failed to initialize build cache at @/.cache/go-build: mkdir @/.cache/go-build/00: permission denied": names + "@/.cache/go-build",
		"npm error code EACCES: permission denied, open '@/.npm/_logs/new'":                                    names + "@/.npm",
		"go: writing go.mod cache: mkdir @/go/pkg/mod: read-only file system":                                  names + "@/go",
		"fatal: unable to access 'https://example.com/': Could not resolve host: example.com":                  network,
		"mkdir ../../x: permission denied":                                                                     "", "PermissionError: [Errno 1] Operation not permitted": "", "touch: cannot touch 'x': Permission denied": "",
	} {
		line = strings.ReplaceAll(line, "@", home)
		must.Equal(t, line, "the sandbox stopped it: "+line+strings.ReplaceAll(more, "@", home), box.Denial(false, work, run.Result{ExitCode: 1, Stderr: "one\n" + line + "\nlast\n"}))
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
	for _, tt := range []struct {
		name    string
		folders []string // @ is the base
		want    []string // the files that the program could write, below the base
		chmod   bool     // it may change the mode of what is there
	}{
		{"no folder", nil, nil, false},
		{"a folder", []string{"@/one"}, []string{"one"}, true},
		{"two folders, one by a link", []string{"@/one", "@/alias"}, []string{"one", "two"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := tree(t, "one/", "two/", "outside/", "alias -> @/two")
			var folders []string
			for _, folder := range tt.folders {
				folders = append(folders, base+folder[1:])
			}
			c := must.Get((&box.Programs{}).Confine(folders...))(t)
			res := ran(t, run.Spec{
				Argv: []string{"bash", "-c", "for d in one two outside; do { echo x >$d/file; chmod 705 $d; } 2>/dev/null; done; exec 3<>/dev/tcp/127.0.0.1/9"},
				Dir:  base, Env: []string{"PATH=/usr/bin:/bin"}, Confinement: c, Timeout: time.Minute,
			})
			if c.Denied(res) == "" {
				t.Errorf("the network is open: %d %s", res.ExitCode, res.Aggregated)
			}
			var got []string
			for _, dir := range []string{"one", "two", "outside"} {
				if _, err := os.Stat(filepath.Join(base, dir, "file")); err == nil {
					got = append(got, dir)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("it wrote in %q, want %q", got, tt.want)
			}
			info := must.Get(os.Stat(filepath.Join(base, "one")))(t)
			must.Equal(t, "the mode of a folder is changed", tt.chmod, info.Mode().Perm() == 0o705)
		})
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
		if res.ExitCode != 0 {
			t.Errorf("%s\n%d %s", script, res.ExitCode, res.Aggregated)
		}
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
		t.Run(probe, func(t *testing.T) {
			err := confinement.Do(func() error {
				words := strings.ReplaceAll(probeWord+" threads SELF "+probe, "SELF", self)
				out, err := exec.Command("/proc/self/exe", strings.Fields(words)...).Output()
				switch string(out) {
				case "EACCES", "EPERM":
				case "ENOSYS": // pidfd_send_signal
				case "EINVAL": // before Linux 6.9 there are no such descriptors
				default:
					t.Errorf("%s, want EACCES or EPERM", out)
				}
				return err
			})
			must.Check(t, err)
		})
	}
	// A signal that arrives before this one came from a command.
	must.OK(t, unix.Kill(os.Getpid(), unix.SIGUSR1))
	if got := <-signals; got != unix.SIGUSR1 {
		t.Errorf("a command sent the server %v", got)
	}
}

// TestOtherCommands checks that a command cannot reach another one of the same confinement.
func TestOtherCommands(t *testing.T) {
	processes := boxtest.Starter(t)
	c := confine(t, readOnly, "/")
	other := &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "echo; read x"}, Dir: "/", Env: []string{"A_KEY=secret"}}
	in := must.Get(other.StdinPipe())(t)
	out := must.Get(other.StdoutPipe())(t)
	must.OK(t, c.Start(other))
	if _, err := out.Read(make([]byte, 1)); err != nil { // it runs
		t.Fatal(err)
	}
	for _, probe := range []string{
		"read /proc/OTHER/environ", "memory /proc/OTHER/mem", "call readlinkat -100 text:/proc/OTHER/fd/0 words:0 8", "call kill OTHER 0",
		"call ptrace 0x4206 OTHER 0 0", "call prlimit64 OTHER 4 words:0,0 0",
	} {
		words := strings.Fields(strings.ReplaceAll("/proc/self/exe "+probeWord+" "+probe, "OTHER", strconv.Itoa(other.Process.Pid)))
		spec := run.Spec{Argv: words, Dir: "/", Confinement: c}
		res, err := processes.Run(t.Context(), spec, nil)
		if err != nil || res.Aggregated != "EACCES" && res.Aggregated != "EPERM" {
			t.Errorf("%s: %+v, %v, want EACCES or EPERM", probe, res, err)
		}
	}
	in.Close()
	_ = other.Wait() // it fails: read found no line
}
