package workers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
)

// The cgroup of the gateway, which the system has delegated to it, becomes
//
//	codex-mcp-gateway    this process and the fence, because a cgroup that passes its controllers on has none
//	worker-ann           the limits of ann's worker
//	  inside             the worker and all that it starts
//
// A worker may run as the same user as the gateway. It sees cgroups read-only; in namespaces of its own it
// could mount the cgroup that it is in, and write to it. That is why the limits are one level above.
const (
	cgroupRoot   = "/sys/fs/cgroup"
	cgroupNode   = "codex-mcp-gateway"
	cgroupWorker = "worker-"
	cgroupInside = "inside"
)

const (
	// cpuPeriod is the period of cpu.max in microseconds.
	cpuPeriod = 100_000
	// cgroupTimeout bounds how long the processes of a cgroup take to end that were killed.
	cgroupTimeout = 5 * time.Second
	// cgroupInterval is how often their end is looked for.
	cgroupInterval = 10 * time.Millisecond
)

// cgroups makes the cgroups of workers. Nil makes none.
type cgroups struct {
	dir   string       // delegated to the gateway
	files []cgroupFile // of each worker
	rmdir func(dir string) error
}

// cgroupFile is what a file of a cgroup must have.
type cgroupFile struct{ name, text string }

// newCgroups moves this process into a cgroup below its own, and returns what makes those of the workers. It
// fails if the system cannot keep one of the limits. It returns nil without limits.
func newCgroups(limits settings.Worker) (*cgroups, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		own = nil // there are none
	}
	return cgroupsAt(cgroupRoot, string(own), limits)
}

// cgroupsAt is newCgroups where cgroups are at root, and that of this process is what /proc/self/cgroup says.
func cgroupsAt(root, own string, limits settings.Worker) (*cgroups, error) {
	keys, controllers, files := limitFiles(limits)
	if keys == nil {
		return nil, nil
	}
	c := &cgroups{dir: root, files: files, rmdir: syscall.Rmdir}
	err := errors.New("this system has no cgroup v2")
	for line := range strings.Lines(own) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			c.dir = filepath.Join(root, strings.TrimSuffix(path, "/"+cgroupNode)) // as an earlier pool has left it
			err = c.claim(controllers)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: no worker can be limited: %w. Give the gateway a cgroup v2 of its own; with systemd its unit needs Delegate=yes and ProtectControlGroups=no (docs/operate/operating.md)",
			strings.Join(keys, ", "), err)
	}
	return c, nil
}

// limitFiles returns the keys of the settings that limit something, the controllers that they need, and what
// the files of a worker's cgroup must have.
func limitFiles(l settings.Worker) (keys, controllers []string, files []cgroupFile) {
	files = []cgroupFile{{"cgroup.max.descendants", "1"}} // no others but inside, so that it can be removed
	add := func(key, controller string, more ...cgroupFile) {
		keys, controllers, files = append(keys, key), append(controllers, controller), append(files, more...)
	}
	if l.Memory > 0 {
		add("worker.memory", "memory", cgroupFile{"memory.max", strconv.FormatInt(int64(l.Memory), 10)}, cgroupFile{"memory.swap.max", "0"}, cgroupFile{"memory.oom.group", "1"})
	}
	if l.CPU > 0 {
		add("worker.cpu", "cpu", cgroupFile{"cpu.max", fmt.Sprintf("%.0f %d", l.CPU*cpuPeriod, cpuPeriod)})
	}
	if l.PIDs > 0 {
		add("worker.pids", "pids", cgroupFile{"pids.max", strconv.Itoa(l.PIDs)})
	}
	return keys, controllers, files
}

// claim makes the cgroup of this process one for workers. It removes those of workers whose gateway was
// killed, and tries one.
func (c *cgroups) claim(controllers []string) error {
	text, err := os.ReadFile(filepath.Join(c.dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("%s is no cgroup v2: %w", c.dir, err)
	}
	for _, controller := range controllers {
		if !slices.Contains(strings.Fields(string(text)), controller) {
			return fmt.Errorf("the cgroup %s lacks the controller %s", c.dir, controller)
		}
	}
	node := filepath.Join(c.dir, cgroupNode)
	if err := os.Mkdir(node, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the cgroup is not delegated: %w", err)
	}
	if err := writeCgroup(node, cgroupFile{"cgroup.procs", strconv.Itoa(os.Getpid())}); err != nil {
		return fmt.Errorf("the cgroup is not delegated: %w", err)
	}
	err = writeCgroup(c.dir, cgroupFile{"cgroup.subtree_control", "+" + strings.Join(controllers, " +")})
	if errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("other processes are in the cgroup: %w", err)
	}
	if err != nil {
		return fmt.Errorf("the cgroup is not delegated: %w", err)
	}
	left, err := os.ReadDir(c.dir)
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), cgroupWorker) {
			err = errors.Join(err, c.of(entry.Name()).end())
		}
	}
	if err != nil {
		return err
	}
	trial, err := c.enter(&exec.Cmd{}, "")
	if err != nil {
		return err
	}
	return trial.end()
}

// writeCgroup writes to a file of a cgroup, which exists.
func writeCgroup(dir string, f cgroupFile) error {
	return os.WriteFile(filepath.Join(dir, f.name), []byte(f.text), 0o600)
}

// cgroup is that of a worker. Nil is none.
type cgroup struct {
	dir    string
	rmdir  func(dir string) error
	inside *os.File // nil after close
}

// of returns the cgroup with a name, which need not exist.
func (c *cgroups) of(name string) *cgroup {
	return &cgroup{dir: filepath.Join(c.dir, name), rmdir: c.rmdir}
}

// enter makes the cgroup of a user's worker, which must not be running. cmd will start in it. The caller must close and
// end it.
func (c *cgroups) enter(cmd *exec.Cmd, user string) (*cgroup, error) {
	if c == nil {
		return nil, nil
	}
	g := c.of(cgroupWorker + user)
	if err := g.end(); err != nil { // it is left if it could not be removed before
		return nil, err
	}
	err := os.Mkdir(g.dir, 0o755)
	for _, f := range c.files {
		if err == nil {
			err = writeCgroup(g.dir, f)
		}
	}
	path := filepath.Join(g.dir, cgroupInside)
	if err == nil {
		err = os.Mkdir(path, 0o755)
	}
	if err == nil {
		g.inside, err = os.Open(path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the limits of the worker: %w", err), g.end())
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(g.inside.Fd())}
	return g, nil
}

// close is for after the start of the process.
func (g *cgroup) close() {
	if g != nil && g.inside != nil {
		g.inside.Close()
		g.inside = nil
	}
}

// exceeded reports whether the limit of the memory has killed processes.
func (g *cgroup) exceeded() bool {
	if g == nil {
		return false
	}
	text, _ := os.ReadFile(filepath.Join(g.dir, "memory.events")) // missing without that limit
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			return count != "0"
		}
	}
	return false
}

// end kills what is left in the cgroup, and removes it.
func (g *cgroup) end() error {
	if g == nil {
		return nil
	}
	g.close()
	if _, err := os.Stat(g.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := writeCgroup(g.dir, cgroupFile{"cgroup.kill", "1"}); err != nil {
		return fmt.Errorf("end the cgroup, which needs Linux 5.14: %w", err)
	}
	for deadline := time.Now().Add(cgroupTimeout); ; <-time.After(cgroupInterval) {
		err := g.rmdir(filepath.Join(g.dir, cgroupInside))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = g.rmdir(g.dir)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove the cgroup %s: %w", g.dir, err)
		}
	}
}
