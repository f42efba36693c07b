package box_test

import (
	"cmp"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// suidVar holds, for the unprivileged run of the test, the path of root's program.
const suidVar = "SANDBOX_TEST_SUID"

// whole is for .ci/run soak.
var whole = flag.Bool("whole", nightly.Tests(), "run more commands at the same time")

// TestTable tries every row in every mode, all rows of a mode in one process.
func TestTable(t *testing.T) {
	processes, others := boxtest.Starter(t), others(t)
	others["@suid"] = os.Getenv(suidVar)
	isRoot, inRooms := os.Getuid() == 0, box.RoomsAvailable() == nil
	if !isRoot {
		t.Run("root", func(t *testing.T) { t.Skip("only root can run these rows, and make a program of root") })
	}
	outside := must.Get(net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	defer outside.Close()
	port := outside.Addr().(*net.TCPAddr).Port
	others["@address"] = fmt.Sprintf("%#x", 0x0100007f00000002|port>>8<<16|port&255<<24)
	for _, mode := range append(protocol.SandboxModes(), withHosts, online) {
		t.Run(string(mode), func(t *testing.T) {
			var rows []row
			var all []attempt
			for _, kind := range slices.Concat(hostKinds, kinds) {
				for _, row := range kind.rows {
					if row.want(mode, inRooms) == "" || row.outside && inRooms || row.user && (isRoot || others["@suid"] == "") || row.root && !isRoot {
						continue
					}
					rows, all = append(rows, row), append(all, attempt{fixture(t), row.probe})
				}
			}
			try(t, processes, mode, others, all[:1]) // what is opened once
			before := descriptors(t)
			for i, got := range try(t, processes, mode, others, all) {
				if want := rows[i].want(mode, inRooms); !slices.Contains(strings.Split(want, "|"), got) {
					t.Errorf("%s: %s, want %s", rows[i].name, got, want)
				}
			}
			const some = 10 // of its own, which come and go; a command has handed it 400
			for until := time.Now().Add(10 * time.Second); descriptors(t) > before+some; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(until) { // the ends of commands are read after their results
					t.Fatalf("the server had %d descriptors, and has %d", before, descriptors(t))
				}
			}
		})
	}
	must.Equal(t, "sockets that are served besides 64", int32(0), tooMany.Load())
	must.OK(t, outside.SetDeadline(time.Now().Add(100*time.Millisecond)))
	if c, err := outside.Accept(); err == nil {
		t.Errorf("somebody was reached: %s", c.RemoteAddr())
	}
}

func descriptors(t *testing.T) int {
	runtime.GC()
	return len(must.Get(os.ReadDir("/proc/self/fd"))(t))
}

// These stand for workspace-write with a network by the host, and with network access.
const withHosts, online protocol.SandboxMode = "hosts", "online"

// want returns what the row's attempt must come to in a mode, with rooms or without, "" if it is not made there.
func (r row) want(mode protocol.SandboxMode, inRooms bool) string {
	confined := map[protocol.SandboxMode]string{
		withHosts: cmp.Or(r.hosts, r.write), protocol.SandboxReadOnly: r.readOnly, protocol.SandboxWorkspaceWrite: r.write,
	}
	switch {
	case inRooms && r.inside != "" && confined[mode] != "":
		return r.inside
	case mode == online:
		return r.online
	case mode != protocol.SandboxDangerFullAccess:
		return confined[mode]
	case r.write == "": // one of hostKinds
		return ""
	}
	return cmp.Or(r.free, "ok")
}

// verdict returns the word of SECURITY.md for an outcome of the row.
func (r row) verdict(want string) string {
	if ok := slices.Contains(strings.Split(want, "|"), "ok"); ok != r.guards {
		return "allowed"
	}
	return "denied"
}

func TestTableAsUser(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) {
		boxtest.AsUser(t, cmd, os.TempDir())
		dir, err := os.MkdirTemp("/var/tmp", "sandbox-test-") // where setuid counts
		must.OK(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		program, err := os.ReadFile("/proc/self/exe")
		suid := filepath.Join(dir, "suid")
		must.OK(t, err, os.Chmod(dir, 0o755), testenv.WriteProgram(suid, program), os.Chmod(suid, 0o755|os.ModeSetuid))
		cmd.Env = append(cmd.Env, suidVar+"="+suid)
	}, tableAsUser)
}

// TestTableWithoutRooms tries the rows where the kernel gives no namespaces.
func TestTableWithoutRooms(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { boxtest.WithoutRooms(t, cmd) }, func(t *testing.T) {
		must.Equal(t, "no rooms", true, box.RoomsAvailable() != nil)
		t.Run("Table", TestTable)
		t.Run("OtherCommands", TestOtherCommands)
		t.Run("Hosts", TestHostsEnd)
	})
}

// TestTableAsUserWithoutRooms does so as a user.
func TestTableAsUserWithoutRooms(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) {
		boxtest.AsUser(t, cmd, os.TempDir())
		boxtest.WithoutRooms(t, cmd)
	}, func(t *testing.T) {
		must.Equal(t, "no rooms", true, os.Getuid() != 0 && box.RoomsAvailable() != nil)
		tableAsUser(t)
	})
}

// tableAsUser runs the tests whose result depends on the user.
func tableAsUser(t *testing.T) {
	t.Run("Table", TestTable)
	t.Run("StartingThread", TestStartingThread)
	t.Run("LimitOfProcesses", TestLimitOfProcesses)
	t.Run("OtherCommands", TestOtherCommands)
	t.Run("SwappedRoot", TestSwappedRoot)
	t.Run("Roots", TestRoots)
	t.Run("LateRoot", TestLateRoot)
}

func fixture(t *testing.T) string {
	t.Helper()
	base := tree(t,
		"work/.git/hooks/", "work/sub/", "work/home/", "work/file=x", "work/symlink -> ../outside/file", "work/dirlink -> ../outside", "outside/dir/", "outside/file=x", "outside/hard=x")
	must.OK(t, os.Link(filepath.Join(base, "outside/hard"), filepath.Join(base, "work/hardlink")), os.Chmod(filepath.Join(base, "work/file"), 0o666)) // no program
	return base
}

// others makes the listeners, processes and shared memory that a command must not reach.
func others(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"@pid": strconv.Itoa(os.Getpid())}
	dir := must.Get(os.MkdirTemp("", "s"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	for name, address := range map[string][2]string{
		"@tcp":      {"tcp", "127.0.0.1:0"},
		"@socket":   {"unix", filepath.Join(dir, "socket")},
		"@abstract": {"unix", fmt.Sprintf("@sandbox-test-%d-%d", os.Getpid(), time.Now().UnixNano())},
	} {
		l := must.Get(net.Listen(address[0], address[1]))(t)
		t.Cleanup(func() { l.Close() })
		found[name] = l.Addr().String()
	}
	f := must.Get(os.Create(filepath.Join(dir, "server-only")))(t)
	t.Cleanup(func() { f.Close() })
	shm := must.Get(os.CreateTemp("/dev/shm", "sandbox-test-"))(t)
	shm.Close()
	t.Cleanup(func() { os.Remove(shm.Name()) })
	found["@shm"] = shm.Name()

	other := exec.Command("sleep", "600")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.OK(t, other.Start())
	t.Cleanup(func() {
		other.Process.Kill()
		other.Wait()
	})
	found["@other"] = strconv.Itoa(other.Process.Pid)
	found["@terminal"] = terminal(t)
	sharedIPC(t, found)
	return found
}

func terminal(t *testing.T) string {
	t.Helper()
	master := must.Get(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { master.Close() })
	must.OK(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n := must.Get(unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN))(t)
	return fmt.Sprintf("/dev/pts/%d", n)
}

// sharedIPC makes memory, semaphores and queues that other processes of the user can find.
func sharedIPC(t *testing.T, found map[string]string) {
	t.Helper()
	key, name := strconv.Itoa(os.Getpid()|0x5a000000), fmt.Sprintf("sandbox-test-%d", os.Getpid())
	found["@key"], found["@queue"] = key, name
	for _, words := range []string{
		"shmget " + key + " 4096 01600|shmctl ID 0 0", "semget " + key + " 1 01600|semctl ID 0 0", "msgget " + key + " 01600|msgctl ID 0 0",
		"mq_open text:" + name + " 0102 0600 0|mq_unlink text:" + name,
	} {
		get, remove, _ := strings.Cut(words, "|")
		id := fmt.Sprint(must.Get(call(strings.Fields(get)))(t))
		if strings.HasPrefix(get, "shm") {
			found["@memory"] = id
		}
		t.Cleanup(func() { _, _ = call(strings.Fields(strings.Replace(remove, "ID", id, 1))) })
	}
}

// attempt is a probe in the working folder of a fixture.
type attempt struct {
	Base  string
	Probe []string
}

// try makes the attempts, one after the other in one process, and returns what they print. The working
// folders are the process' roots.
func try(t *testing.T, processes *run.Starter, mode protocol.SandboxMode, others map[string]string, all []attempt) []string {
	t.Helper()
	policy := write()
	if policy.NetworkAccess = mode == online; !policy.NetworkAccess && mode != withHosts {
		policy.Mode = mode
	}
	for i, one := range all {
		unique := strconv.FormatInt(time.Now().UnixNano(), 36)
		t.Cleanup(func() { // made where nothing confines
			_ = os.Remove("/dev/shm/" + unique)
			_, _ = call([]string{"mq_unlink", "text:" + unique})
		})
		names := []string{"@outside", filepath.Join(one.Base, "outside"), "@unique", unique}
		for name, stands := range others {
			names = append(names, name, stands)
		}
		words := slices.Clone(one.Probe)
		for k, word := range words {
			words[k] = strings.NewReplacer(names...).Replace(word)
		}
		all[i].Probe = words
		policy.WritableRoots = append(policy.WritableRoots, filepath.Join(one.Base, "work"))
	}
	list := must.Get(json.Marshal(all))(t)
	dir := tree(t, "attempts="+string(list))
	spec := run.Spec{Argv: []string{"/proc/self/exe", probeWord, eachProbe, filepath.Join(dir, "attempts")}, Dir: "/", Timeout: time.Minute}
	spec.Env = run.EnvPolicy{}.Environ(append(os.Environ(), "SOME_TOKEN=secret", "some_api_key_file=secret", "MYSECRETS=secret"))
	if mode == withHosts {
		h := confineHosts(t, policy.WritableRoots[0], policy.WritableRoots[1:], echo)
		defer h.Close()
		spec.Confinement, spec.Env = h, h.Environ(spec.Env)
	} else if policy.Mode != protocol.SandboxDangerFullAccess {
		c := confine(t, policy, policy.WritableRoots[0])
		spec.Confinement = c
		spec.Env = append(spec.Env, c.Environ()...)
	}
	res := must.Get(processes.Run(t.Context(), spec, nil))(t)
	got := strings.Split(strings.TrimSuffix(res.Stdout, "\n"), "\n")
	if len(got) != len(all) || res.ExitCode != 0 {
		t.Fatalf("%d of %d attempts, exit code %d: %s", len(got), len(all), res.ExitCode, res.Stderr)
	}
	return got
}

// TestSecurityPage compares the tables in SECURITY.md with the rows that are tried.
func TestSecurityPage(t *testing.T) {
	page := strings.NewReplacer(", unless `network_access`", "", "*", "").Replace(string(must.Get(os.ReadFile("../../../SECURITY.md"))(t)))
	for header, tt := range map[string]struct {
		kinds    []kind
		modes    []protocol.SandboxMode // of the columns
		untested []string
	}{
		"| a command tries to |": {
			kinds, []protocol.SandboxMode{protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite}, []string{"| use up disk, memory, processors | allowed | allowed |"},
		},
		"| a command that may ask for hosts tries to |": {hostKinds, []protocol.SandboxMode{withHosts}, []string{}},
	} {
		_, table, _ := strings.Cut(page, "\n"+header)
		table, _, _ = strings.Cut(table, "\n\n")
		lines := strings.Split(table, "\n")[2:]
		for _, kind := range tt.kinds {
			if kind.name == "" {
				continue
			}
			for _, row := range kind.rows {
				if row.outside {
					continue
				}
				var want strings.Builder
				want.WriteString("| " + kind.name + " |")
				for _, mode := range tt.modes {
					want.WriteString(" " + row.verdict(row.want(mode, true)) + " |")
				}
				must.Equal(t, row.name, want.String(), lines[0])
			}
			lines = lines[1:]
		}
		must.Equal(t, "lines that no row tries", tt.untested, lines)
	}
}
