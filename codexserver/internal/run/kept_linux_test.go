package run_test

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// TestLeftovers lets a command leave a daemon, which lives until the leftovers are closed, even if it keeps writing.
func TestLeftovers(t *testing.T) {
	mark := "77" + strconv.Itoa(os.Getpid())
	processes := boxtest.Starter(t)
	var left run.Leftovers
	spec := run.Spec{
		Argv: []string{"sh", "-c", `(setsid sh -c "while sleep 0.01; do echo tick; done # $1" &) ; sleep 1000.$1 & echo done`, "sh", mark},
		Dir:  "/", Env: path, Leftovers: &left,
	}
	res := must.Get(processes.Run(t.Context(), spec, nil))(t)
	must.Equal(t, "it ended", true, res.ExitCode == 0 && strings.Contains(res.Stdout, "done\n"))
	daemons := []string{"sh -c while sleep 0.01; do echo tick; done # " + mark + " ", "sleep 1000." + mark + " "}
	deadline := time.Now().Add(time.Minute)
	for !slices.Equal(daemons, commandLines(find(mark))) { // which begin as copies of the command
		if <-time.After(5 * time.Millisecond); time.Now().After(deadline) {
			t.Fatalf("left: %q, want %q", commandLines(find(mark)), daemons)
		}
	}
	// Longer than a daemon lives that writes to a pipe without a reader.
	spec.Argv = []string{"sleep", "0.3"}
	must.Get(processes.Run(t.Context(), spec, nil))(t)
	must.Equal(t, "left still", daemons, commandLines(find(mark)))
	left.Close()
	must.Equal(t, "left after Close", none, find(mark))

	spec.Argv = []string{"sh", "-c", "sleep 1000.$0 &", mark}
	must.Get(processes.Run(t.Context(), spec, nil))(t)
	must.Equal(t, "left by another command after Close", none, find(mark))
}

// TestTakenPID has a daemon give an orphan the process id of the command, which has ended. Its end is not the command's.
func TestTakenPID(t *testing.T) {
	const last = "/proc/sys/kernel/ns_last_pid"
	if err := os.WriteFile(last, []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		t.Skipf("only root chooses process ids: %v", err)
	}
	take := `while kill -0 $0; do :; done; for n in $(seq 99); do echo $(($0-1)) >` + last + `; sleep 0.1 & [ $! = $0 ] && echo taken && exit; done`
	for range 9 { // another process of the system may take the id first, and keep it
		r, w, err := os.Pipe()
		must.OK(t, err)
		proc := startIn(t, boxtest.Starter(t), &exec.Cmd{
			Path: "/bin/bash", Args: []string{"bash", "-c", `setsid bash -c "$0" $$ 2>/dev/null & exit 3`, take}, Dir: "/", Env: path, Stdout: w,
		})
		out, err := io.ReadAll(r)
		must.OK(t, err, r.Close())
		<-proc.Exited()
		if err := proc.End(); err != nil || proc.Code() != 3 {
			t.Errorf("code %d, %v", proc.Code(), err)
		}
		if string(out) == "taken\n" {
			return
		}
	}
	t.Error("others took the id each time")
}

// commandLines returns the command lines of processes. A shell that starts a program is two processes with
// one line for a moment.
func commandLines(found map[string]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(found)))
}

// TestKeptRunsAsOwn compares a command's process with one that this process starts.
func TestKeptRunsAsOwn(t *testing.T) {
	script := `echo $0; cat; pwd; ulimit -Sn; ulimit -Hn; umask; ls -l /proc/self/fd | grep -c -v pipe:; grep -E '^(Sig(Ign|Blk|Cgt)|NoNewPrivs|Cap|Cpus_allowed:)' /proc/self/status; cut -d' ' -f19 /proc/self/stat; env | sort`
	must.OK(t, run.SealDescriptors()) // as the server does
	words, env := []string{"sh", "-c", script, "a\xffb"}, append([]string{"X=\xfe y\nz"}, path...)
	own := exec.Cmd{Path: "/bin/sh", Args: words, Dir: "/usr", Env: env, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	var out, errs strings.Builder
	own.Stdout, own.Stderr = &out, &errs
	must.OK(t, own.Run())
	kept := must.Get(boxtest.Starter(t).Run(t.Context(), run.Spec{Argv: words, Dir: "/usr", Env: env}, nil))(t)
	if strings.ToValidUTF8(out.String(), "\uFFFD") != kept.Stdout || errs.String() != kept.Stderr {
		t.Errorf("without a launcher:\n%s%s\nwith one:\n%s%s", &out, &errs, kept.Stdout, kept.Stderr)
	}
}

// TestExact starts nothing behind a symbolic link when the folder is exact.
func TestExact(t *testing.T) {
	base := boxtest.Folder(t)
	dir, link := filepath.Join(base, "dir"), filepath.Join(base, "link")
	boxtest.Lay(t, base, "dir/sub/", "link -> dir")
	processes := boxtest.Starter(t)
	for _, tt := range []struct {
		dir   string
		exact bool
		want  string // "" fails
	}{
		{dir, true, dir}, {dir + "/sub", true, dir + "/sub"}, {link, false, dir}, {link, true, ""}, {link + "/sub", true, ""}, {dir + "/none", true, ""},
	} {
		spec := run.Spec{Argv: []string{"/bin/pwd", "-P"}, Dir: tt.dir, Exact: tt.exact, Env: path}
		got, err := processes.Run(t.Context(), spec, nil)
		var start *run.StartError
		if tt.want == "" && !errors.As(err, &start) || tt.want != "" && (err != nil || got.Stdout != tt.want+"\n") {
			t.Errorf("%s, exact %t: %q, %v, want %q", tt.dir, tt.exact, got.Stdout, err, tt.want)
		}
	}
}

// hiddenVar holds, for the unprivileged run of a test, the path of a program that its
// user cannot read, whose processes are therefore hidden.
const hiddenVar = "RUN_TEST_HIDDEN"

// TestHiddenProcesses ends a command whose processes /proc does not show.
func TestHiddenProcesses(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { hideProcesses(t, cmd) }, endHidden)
}

func endHidden(t *testing.T) {
	hidden := os.Getenv(hiddenVar)
	var p run.Starter
	defer p.Close()
	cmd, r := script(t, `echo $$; h=`+hidden+`; (setsid $h 60 &); $h 60 & $h 60 & (setsid setsid $h 60 &); exec $h 60`)
	proc := startIn(t, &p, cmd)
	pid := make([]byte, 16)
	n := must.Get(r.Read(pid))(t)
	comm := "/proc/" + strings.TrimSpace(string(pid[:n])) + "/comm"
	for { // until the shell has become the program
		if _, err := os.Stat(comm); err != nil {
			break
		}
	}
	must.OK(t, proc.End())
	must.Get(io.ReadAll(r))(t) // until the last writer has ended
}

// hideProcesses lets cmd run as a user in a mount namespace whose /proc shows a user only
// what that user may trace. Only root can do that.
func hideProcesses(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if !boxtest.IsRoot() {
		t.Skip("only root can act as another user and mount /proc")
	}
	dir := must.Get(os.MkdirTemp("/var/tmp", "run-test-"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	sleep := must.Get(exec.LookPath("sleep"))(t)
	for from, to := range map[string]string{"/proc/self/exe": "test", sleep: "hidden"} {
		program, err := os.ReadFile(from)
		must.OK(t, err, testenv.WriteProgram(filepath.Join(dir, to), program))
	}
	must.OK(t, os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, "hidden"), 0o711))
	cmd.Path, cmd.Dir = "/bin/sh", "/"
	cmd.Args = append([]string{"sh", "-c", `mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$0" "$@"`,
		filepath.Join(dir, "test")}, cmd.Args[1:]...)
	cmd.Env = append(cmd.Env, hiddenVar+"="+filepath.Join(dir, "hidden"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
}

// TestSecondCondition takes all processes of a PID namespace for those of one command. Those that began before its
// launcher, and those of another user, go on. A command itself also ends if it becomes another user.
func TestSecondCondition(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { separate(t, cmd) }, func(t *testing.T) {
		if os.Getpid() != 1 {
			t.Fatal("not in a PID namespace")
		}
		started := func(user uint32) *exec.Cmd {
			cmd := exec.Command("sleep", "1000")
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user}}
			must.OK(t, cmd.Start())
			<-time.After(50 * time.Millisecond) // times in /proc have ten
			return cmd
		}
		earlier, launcher, foreign, later := started(0), started(0), started(65534), started(0)
		run.EndAll(launcher.Process.Pid)
		for what, tt := range map[string]struct {
			cmd  *exec.Cmd
			want bool
		}{"an earlier one": {earlier, true}, "another user's": {foreign, true}, "a later one": {later, false}} {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(tt.cmd.Process.Pid, &status, syscall.WNOHANG, nil)
			if err != nil || (pid == 0) != tt.want {
				t.Errorf("%s: %v, %v; want it to live: %t", what, status, err, tt.want)
			}
		}

		var p run.Starter
		defer p.Close()
		proc, r := startThen(t, &p, "exec setpriv --reuid=65534 sh -c '(setsid sleep 1000 &); echo up; exec sleep 1000'")
		must.OK(t, proc.End())
		must.Get(io.ReadAll(r))(t) // to the end of the last who could write
	})
}

// separate lets cmd run in a PID namespace of its own. Only root can do that everywhere, and act as another user.
func separate(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if !boxtest.IsRoot() {
		t.Skip("only root can make a PID namespace and act as another user")
	}
	cmd.Args = append([]string{"sh", "-c", `mount -t proc proc /proc && exec "$0" "$@"`, must.Get(os.Executable())(t)}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Unshareflags: unix.CLONE_NEWNS}
}

// TestConnect closes connections to processes that end in different ways. Each process has
// started a daemon, which ends, too.
func TestConnect(t *testing.T) {
	const long, short = time.Minute, 20 * time.Millisecond
	for name, tt := range map[string]struct {
		script string
		talk   run.Talk
		code   int // 0 when it ends well
	}{
		"by itself":             {"exec cat", run.Talk{Leave: long}, 0},
		"when it is asked":      {"trap 'exit 0' TERM; echo; while :; do sleep 0.01; done", run.Talk{Leave: short, Ask: long}, 0},
		"with an error":         {"echo; read end; exit 3", run.Talk{Leave: long}, 3},
		"killed":                {"trap '' TERM; echo; while :; do sleep 0.01; done", run.Talk{Leave: short, Ask: short}, -1},
		"killed without asking": {"trap 'exit 0' TERM; echo; while :; do sleep 0.01; done", run.Talk{Leave: short}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			mark := "76" + strconv.Itoa(os.Getpid()) + strconv.Itoa(len(name))
			cmd := exec.Command("/bin/sh", "-c", `(setsid sleep 1000.$0 > /dev/null 2>&1 &); `+tt.script, mark)
			cmd.Env = path
			c, err := boxtest.Starter(t).Connect(t.Context(), cmd, tt.talk)
			must.OK(t, err)
			must.Get(c.In.WriteString("\n"))(t)
			must.Get(bufio.NewReader(c.Out).ReadString('\n'))(t)
			err = c.Close()
			var exit *run.ExitError
			if tt.code == 0 && err != nil || tt.code != 0 && (!errors.As(err, &exit) || exit.ExitCode() != tt.code) {
				t.Errorf("error %v, want code %d", err, tt.code)
			}
			must.Equal(t, "left", none, find(mark))
		})
	}
}

// TestReady starts nothing in a program whose main does not call Main.
func TestReady(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, withoutMain+"=1") }, func(t *testing.T) {
		must.Equal(t, "ready", false, run.Ready() == nil)
		_, err := (&run.Starter{}).Run(t.Context(), run.Spec{Argv: []string{"/bin/true"}, Dir: "/"}, nil)
		must.Equal(t, "it ran", false, err == nil)
	})
}
