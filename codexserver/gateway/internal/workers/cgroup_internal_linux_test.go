package workers

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/google/go-cmp/cmp"
)

// allLimits are all limits of a worker.
var allLimits = settings.Worker{Memory: 1 << 30, CPU: 1.5, PIDs: 100}

// fakeCgroups makes a tree of files that looks like cgroups, where this process is in /unit.
func fakeCgroups(t *testing.T, controllers string) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, dir := range []string{"unit", "unit/worker-old/inside", "unit/.control"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "unit", "cgroup.controllers"), []byte(controllers+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

// filesIn returns the texts of the files in a folder, by path.
func filesIn(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCgroupFiles checks what the gateway writes to its cgroup and to that of a worker.
func TestCgroupFiles(t *testing.T) {
	const own = "1:name=systemd:/other\n0::/unit\n"
	for name, tt := range map[string]struct {
		limits settings.Worker
		on     string
		want   map[string]string // in the cgroup of a worker
	}{
		"all": {allLimits, "+memory +cpu +pids", map[string]string{
			"memory.max": "1073741824", "memory.swap.max": "0", "memory.oom.group": "1", "cpu.max": "150000 100000", "pids.max": "100",
		}},
		"memory":             {settings.Worker{Memory: 64 << 20}, "+memory", map[string]string{"memory.max": "67108864", "memory.swap.max": "0", "memory.oom.group": "1"}},
		"the least of cores": {settings.Worker{CPU: 0.01}, "+cpu", map[string]string{"cpu.max": "1000 100000"}},
		"a third of a core":  {settings.Worker{CPU: 0.333333}, "+cpu", map[string]string{"cpu.max": "33333 100000"}},
		"pids":               {settings.Worker{PIDs: 64}, "+pids", map[string]string{"pids.max": "64"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := fakeCgroups(t, "cpuset cpu io memory pids")
			_, controllers, files := limitFiles(tt.limits)
			c := &cgroups{dir: filepath.Join(root, "unit"), files: files}
			var removed []string
			c.rmdir = func(dir string) error {
				removed = append(removed, strings.TrimPrefix(dir, c.dir+"/"))
				return os.RemoveAll(dir)
			}
			if err := c.claim(controllers); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{
				"cgroup.controllers": "cpuset cpu io memory pids\n", "cgroup.subtree_control": tt.on, "codex-mcp-gateway/cgroup.procs": strconv.Itoa(os.Getpid()),
			}
			if diff := cmp.Diff(want, filesIn(t, c.dir)); diff != "" {
				t.Errorf("the cgroup of the gateway (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"worker-old/inside", "worker-old", "worker-/inside", "worker-"}, removed); diff != "" {
				t.Errorf("removed at the start (-want +got):\n%s", diff)
			}
			cmd := &exec.Cmd{}
			g, err := c.enter(cmd, "ann")
			if err != nil {
				t.Fatal(err)
			}
			tt.want["cgroup.max.descendants"] = "1"
			if diff := cmp.Diff(tt.want, filesIn(t, filepath.Join(c.dir, "worker-ann"))); diff != "" {
				t.Errorf("the cgroup of a worker (-want +got):\n%s", diff)
			}
			if in, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", cmd.SysProcAttr.CgroupFD)); !cmd.SysProcAttr.UseCgroupFD || in != filepath.Join(c.dir, "worker-ann", "inside") {
				t.Errorf("the worker would start in %s, %v", in, err)
			}
			if err := g.end(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(g.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the cgroup of the worker is left: %v", err)
			}
		})
	}
	// An earlier pool of this process has moved it already.
	root := fakeCgroups(t, "memory")
	if _, err := cgroupsAt(root, "0::/unit/codex-mcp-gateway\n", settings.Worker{CPU: 1}); err == nil || !strings.Contains(err.Error(), root+"/unit lacks the controller cpu") {
		t.Errorf("moved already: %v", err)
	}
	if c, err := cgroupsAt("/nowhere", own, settings.Worker{}); c != nil || err != nil {
		t.Errorf("without limits: %v, %v", c, err)
	}
	if g, err := (*cgroups)(nil).enter(&exec.Cmd{}, "ann"); g != nil || g.exceeded() || g.end() != nil || err != nil {
		t.Errorf("the cgroup of a worker without limits: %v, %v", g, err)
	}
}

// TestCgroupsRefused checks that the gateway does not start when it cannot keep a limit, and what it says.
func TestCgroupsRefused(t *testing.T) {
	block := func(path string) func(t *testing.T, root string) { // a folder is no file that anybody can write, even root
		return func(t *testing.T, root string) {
			if err := os.MkdirAll(filepath.Join(root, path), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	nothing := func(*testing.T, string) {}
	for name, tt := range map[string]struct {
		own, controllers string
		limits           settings.Worker
		change           func(t *testing.T, root string)
		want             []string
	}{
		"version 1":           {"4:memory:/unit\n", "memory", allLimits, nothing, []string{"worker.memory, worker.cpu, worker.pids: ", "no cgroup v2"}},
		"nothing":             {"", "memory", allLimits, nothing, []string{"no cgroup v2"}},
		"both versions":       {"0::/elsewhere\n", "memory", allLimits, nothing, []string{"elsewhere is no cgroup v2"}},
		"outside":             {"0::/../../unit\n", "memory", allLimits, nothing, []string{"unit is no cgroup v2"}},
		"without controllers": {"0::/unit\n", "", settings.Worker{PIDs: 64}, nothing, []string{"worker.pids: ", "lacks the controller pids"}},
		"another controller":  {"0::/unit\n", "memory2 cpu pids", allLimits, nothing, []string{"lacks the controller memory"}},
		"no cgroup below": {"0::/unit\n", "cpu", settings.Worker{CPU: 1}, func(t *testing.T, root string) {
			if err := errors.Join(os.RemoveAll(root+"/unit/codex-mcp-gateway"), os.Symlink(root+"/missing/x", root+"/unit/codex-mcp-gateway")); err != nil {
				t.Fatal(err)
			}
		}, []string{"worker.cpu: ", "not delegated"}},
		"no move":         {"0::/unit\n", "cpu", settings.Worker{CPU: 1}, block("unit/codex-mcp-gateway/cgroup.procs"), []string{"not delegated", "cgroup.procs"}},
		"not passed on":   {"0::/unit\n", "cpu", settings.Worker{CPU: 1}, block("unit/cgroup.subtree_control"), []string{"not delegated", "cgroup.subtree_control"}},
		"an old kernel":   {"0::/unit\n", "cpu", settings.Worker{CPU: 1}, block("unit/worker-old/cgroup.kill"), []string{"Linux 5.14"}},
		"no rmdir":        {"0::/unit\n", "cpu", settings.Worker{CPU: 1}, block("unit/worker-old/inside/more"), []string{"remove the cgroup"}},
		"a wrong trial":   {"0::/unit\n", "cpu", settings.Worker{CPU: 1}, func(t *testing.T, root string) { _ = os.RemoveAll(root + "/unit/worker-old") }, []string{"remove the cgroup"}}, // a fake one has files
		"no such parent":  {"0::/unit/codex-mcp-gateway/more\n", "cpu", settings.Worker{CPU: 1}, nothing, []string{"more is no cgroup v2"}},
		"a removed group": {"0::/unit (deleted)\n", "cpu", settings.Worker{CPU: 1}, nothing, []string{"(deleted) is no cgroup v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := fakeCgroups(t, tt.controllers)
			tt.change(t, root)
			c, err := cgroupsAt(root, tt.own, tt.limits)
			if c != nil || err == nil {
				t.Fatalf("it starts: %v, %v", c, err)
			}
			for _, want := range append(tt.want, "Delegate=yes") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
			}
		})
	}
}

// TestCgroupStart checks that a worker does not start outside of its cgroup, and that none is left.
func TestCgroupStart(t *testing.T) {
	top := t.TempDir()
	folder := filepath.Join(top, "ann")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Mkdir(filepath.Join(top, "cgroup"), 0o700), os.Mkdir(filepath.Join(top, "home"), 0o700)); err != nil {
		t.Fatal(err)
	}
	p := newPool(Options{
		Home: filepath.Join(top, "home"), Program: "/bin/sh", HTTP: settings.HTTP{Principals: map[string]settings.Principal{"ann": {Folders: []string{folder}}}},
		Logger: slog.New(slog.DiscardHandler),
	})
	p.cgroups = &cgroups{dir: filepath.Join(top, "cgroup"), rmdir: os.RemoveAll} // no cgroup
	w, err := p.startProcess(t.Context(), "ann")
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this user may make no namespaces:", err)
	}
	if w != nil || !errors.Is(err, syscall.EBADF) {
		t.Errorf("the worker starts: %v, %v", w, err)
	}
	if left := filesIn(t, p.cgroups.dir); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// TestCgroupExceeded reads whether the limit of the memory has killed processes.
func TestCgroupExceeded(t *testing.T) {
	for text, want := range map[string]bool{
		"low 0\nhigh 0\nmax 7\noom 1\noom_kill 3\noom_group_kill 1\n": true, "max 7\noom 1\noom_kill 0\noom_group_kill 0\n": false, "oom_kill": false, "": false,
	} {
		g := &cgroup{dir: t.TempDir()}
		if err := writeCgroup(g.dir, cgroupFile{"memory.events", text}); err != nil {
			t.Fatal(err)
		}
		if got := g.exceeded(); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// realCgroup makes a cgroup of this system, with as many of these controllers as possible. It skips the test if this user may make none.
func realCgroup(t *testing.T) (dir string) {
	t.Helper()
	var err error
	for _, root := range []string{cgroupRoot, filepath.Join(cgroupRoot, "unified")} {
		if _, err = os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
			continue
		}
		dir = filepath.Join(root, fmt.Sprintf("codexmcp-test-%d", os.Getpid()))
		if err = os.Mkdir(dir, 0o755); err == nil {
			t.Cleanup(func() {
				if err := syscall.Rmdir(dir); err != nil {
					t.Error(err)
				}
			})
			return dir
		}
	}
	t.Skip("no cgroup v2 in which this user may make another one:", err)
	return ""
}

// inCgroup starts a shell in the cgroup of a user's worker, and returns when it has printed a line. ended has how it ended.
func inCgroup(t *testing.T, c *cgroups, user, script string) (g *cgroup, pid int, ended chan error) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	if g, err = c.enter(cmd, user); err == nil {
		err = cmd.Start()
		g.close()
	}
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Errorf("the process prints nothing: %v", err)
	}
	return g, cmd.Process.Pid, ended
}

// TestCgroupLife checks that processes start in a cgroup of this system, and end with it.
func TestCgroupLife(t *testing.T) {
	dir := realCgroup(t)
	_, _, files := limitFiles(settings.Worker{})
	c := &cgroups{dir: dir, files: files, rmdir: syscall.Rmdir}
	const script = "sleep 1000000 & setsid sleep 1000000 & echo; wait"
	first, pid, ended := inCgroup(t, c, "ann", script)
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); !strings.Contains(string(text), filepath.Base(dir)+"/worker-ann/inside\n") {
		t.Errorf("the process is in %s, %v", text, err)
	}
	if err := os.Mkdir(filepath.Join(first.dir, "inside", "more"), 0o755); err == nil {
		t.Error("a worker may make more cgroups")
	}
	// The gateway was killed, and the worker has not noticed.
	second, _, again := inCgroup(t, c, "ann", script)
	if err := <-ended; err == nil || err.Error() != "signal: killed" {
		t.Errorf("what was left ends with %v", err)
	}
	other, _, others := inCgroup(t, c, "bob", script)
	if err := second.end(); err != nil {
		t.Error(err)
	}
	if err := <-again; err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ends with %v", err)
	}
	if _, err := os.Stat(second.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cgroup is left: %v", err)
	}
	select {
	case err := <-others:
		t.Errorf("that of another user ends with %v", err)
	default:
	}
	if err := errors.Join(other.end(), other.end()); err != nil {
		t.Error(err)
	}
	<-others
}

// TestCgroupLimits checks that this system keeps the limits, in the cgroup that becomes that of this process.
func TestCgroupLimits(t *testing.T) {
	dir := realCgroup(t)
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		t.Fatal(err)
	}
	for _, controller := range []string{"memory", "cpu", "pids"} {
		if !slices.Contains(strings.Fields(string(text)), controller) {
			t.Skip("cgroup v2 of this system lacks the controller " + controller)
		}
	}
	root := filepath.Dir(dir)
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	_, before, _ := strings.Cut(string(own), "0::")
	before = filepath.Join(root, strings.TrimSpace(before))
	t.Cleanup(func() {
		err := writeCgroup(before, cgroupFile{"cgroup.procs", strconv.Itoa(os.Getpid())})
		if err = errors.Join(err, syscall.Rmdir(filepath.Join(dir, cgroupNode))); err != nil {
			t.Error(err)
		}
	})
	c, err := cgroupsAt(root, "0::/"+filepath.Base(dir)+"\n", settings.Worker{Memory: 64 << 20, CPU: 0.5, PIDs: 64})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cgroupsAt(root, "0::/"+filepath.Base(dir)+"/"+cgroupNode+"\n", settings.Worker{PIDs: 64}); err != nil {
		t.Errorf("a second pool: %v", err)
	}
	g, _, ended := inCgroup(t, c, "ann", "echo; sleep 1000000 & exec dd if=/dev/zero of=/dev/null bs=512M count=1")
	select {
	case err := <-ended:
		if err == nil || err.Error() != "signal: killed" || !g.exceeded() {
			t.Errorf("too much memory: the process ends with %v, %v", err, g.exceeded())
		}
	case <-time.After(patience):
		t.Error("too much memory: the process runs")
	}
	if err := g.end(); err != nil {
		t.Error(err)
	}
	many, _, ended := inCgroup(t, c, "bob", "echo; for i in $(seq 100); do sleep 1000000 & done; wait")
	select {
	case err := <-ended: // the shell gives up when it cannot fork
		if err == nil || many.exceeded() {
			t.Errorf("too many processes: the shell ends with %v, %v", err, many.exceeded())
		}
	case <-time.After(patience):
		t.Error("too many processes: all of them run")
	}
	if err := many.end(); err != nil {
		t.Error(err)
	}
	busy, _, ended := inCgroup(t, c, "cid", "echo; while :; do :; done")
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // what the system counts
		stat, err := os.ReadFile(filepath.Join(busy.dir, "cpu.stat"))
		if strings.Contains(string(stat), "\nnr_throttled ") && !strings.Contains(string(stat), "\nnr_throttled 0\n") {
			break
		}
		if err != nil || time.Now().After(until) {
			t.Errorf("it may compute all the time: %v\n%s", err, stat)
			break
		}
	}
	if err := busy.end(); err != nil {
		t.Error(err)
	}
	<-ended
}
