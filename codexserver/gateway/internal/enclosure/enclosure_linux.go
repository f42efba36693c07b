//go:build amd64 || arm64

package enclosure

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

// The names, as os.Args[0], under which this program runs again.
const (
	encloserName = "codex-mcp-gateway-encloser"  // makes an enclosure
	firstName    = "codex-mcp-gateway-enclosure" // is the first process of one
)

// hasMain is set by [Main].
var hasMain bool

// maxArgument bounds an argument of the encloser, in bytes. Linux accepts 128 KiB.
const maxArgument = 64 << 10

// spec is in the arguments of the encloser, one after another, and in part in that of the first
// process.
type spec struct {
	Writable []string `json:"writable,omitzero"`
	Hidden   []string `json:"hidden,omitzero"`
	Temp     string   `json:"temp,omitzero"`
	Dir      string   `json:"dir,omitzero"`

	User  int `json:"user,omitzero"`
	Group int `json:"group,omitzero"`

	Args  []string `json:"args"`           // of the program
	Files int      `json:"files,omitzero"` // how many descriptors it inherits, from 3 on; the next one is the program

	Limited bool `json:"limited,omitzero"` // the next descriptors are those of a [Life]
}

// Start starts a program in the enclosure, with the Path, Args, Env, Dir, standard streams and
// ExtraFiles of cmd. The enclosure may hide the program. The
// process of cmd is this program, whose main begins with [Main], as the first of the enclosure:
// when it ends, all others end. It exits with the program's status, or with 126 when the enclosure
// cannot be made; the reason is on standard error.
func (e *Enclosure) Start(cmd *exec.Cmd) error {
	if !hasMain {
		return errors.New("enclosure: the main of this program does not call Main")
	}
	fd, err := unix.Open(cmd.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: cmd.Path, Err: err}
	}
	program := os.NewFile(uintptr(fd), cmd.Path)
	defer program.Close()
	text, err := json.Marshal(spec{
		Writable: e.Writable, Hidden: e.Hidden, Temp: e.Temp, Dir: cmd.Dir,
		User: os.Geteuid(), Group: os.Getegid(), Args: cmd.Args, Files: len(cmd.ExtraFiles), Limited: e.Life != nil,
	})
	if err != nil {
		return err
	}
	cmd.Path, cmd.Args, cmd.Dir = "/proc/self/exe", []string{encloserName}, "/"
	cmd.ExtraFiles = append(slices.Clone(cmd.ExtraFiles), program)
	if e.Life != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, e.Life.timer, e.Life.lasts)
	}
	for part := range slices.Chunk(text, maxArgument) { // there may be thousands of paths
		cmd.Args = append(cmd.Args, string(part))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC,
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP},
		Setsid:      true, // out of reach of the terminal
	}
	if os.Geteuid() == 0 {
		// So that files keep their owners. Only the parent may map ids other than its own.
		if err := mapAll(cmd.SysProcAttr); err != nil {
			return err
		}
	}
	return cmd.Start()
}

// mapAll maps every user and group to itself.
func mapAll(attr *syscall.SysProcAttr) error {
	for name, to := range map[string]*[]syscall.SysProcIDMap{"uid_map": &attr.UidMappings,
		"gid_map": &attr.GidMappings} {
		text, err := os.ReadFile("/proc/self/" + name)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			var first, outside, count int
			if _, err := fmt.Sscan(line, &first, &outside, &count); err != nil {
				return fmt.Errorf("/proc/self/%s: %w", name, err)
			}
			*to = append(*to, syscall.SysProcIDMap{ContainerID: first, HostID: first, Size: count})
		}
	}
	// In a user namespace of another user it may be denied, also for those within it.
	allowed, err := os.ReadFile("/proc/self/setgroups")
	attr.GidMappingsEnableSetgroups = strings.TrimSpace(string(allowed)) != "deny"
	return err
}

// Try returns an error that names what this system lacks for an [Enclosure] of a program, or
// nil. It starts the program with the argument --version.
func Try(program string) error {
	temp, err := os.MkdirTemp("", "codex-mcp-trial")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	var stderr bytes.Buffer
	cmd := &exec.Cmd{Path: program, Args: []string{program, "--version"}, Env: []string{}, Dir: "/", Stderr: &stderr}
	if err = (&Enclosure{Writable: []string{temp}, Temp: temp}).Start(cmd); err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("%w: %s --version in an enclosure: %v %s", ErrUnavailable, program, err,
			strings.TrimSpace(stderr.String()))
	}
	return nil
}

// Main must be the first statement of a program that starts enclosures. It does not return in a
// process that was started to become an enclosure. In any other it returns at once.
func Main() {
	hasMain = true
	if len(os.Args) < 2 || len(os.Args) > 2 && os.Args[0] != encloserName {
		return
	}
	var err error
	switch os.Args[0] {
	case encloserName:
		runtime.LockOSThread() // each thread has capabilities of its own
		err = becomeFirst(strings.Join(os.Args[1:], ""))
	case firstName:
		var status int
		if status, err = serve(os.Args[1]); err == nil {
			syscall.Exit(status)
		}
	default:
		return
	}
	fmt.Fprintf(os.Stderr, "codex-mcp-gateway: enclosure: %v\n", err)
	os.Exit(126)
}

// becomeFirst makes the enclosure and turns this process into its first one.
func becomeFirst(text string) error {
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	if s.User != 0 {
		if err := mapIDs(s.User, s.Group); err != nil {
			return err
		}
	}
	if err := box.HideProcess(); err != nil {
		return err
	}
	if err := s.mount(); err != nil {
		return err
	}
	if err := os.Chdir(s.Dir); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	rest, err := json.Marshal(spec{Args: s.Args, Files: s.Files, Limited: s.Limited})
	if err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", []string{firstName, string(rest)}, os.Environ())
}

// mapIDs keeps the user and the group as they are outside. The process does this itself:
// it is hidden until it executes a program, so the server cannot do it.
func mapIDs(user, group int) error {
	for _, file := range []struct{ name, content string }{
		{"setgroups", "deny"},
		{"uid_map", fmt.Sprintf("%d %[1]d 1", user)},
		{"gid_map", fmt.Sprintf("%d %[1]d 1", group)},
	} {
		if err := os.WriteFile("/proc/self/"+file.name, []byte(file.content), 0); err != nil {
			return fmt.Errorf("map user and group: %w", err)
		}
	}
	return nil
}

// dropCapabilities drops all capabilities for good. The bounding set is empty, so
// executing a program does not restore one, and no process of the enclosure can change
// its mounts. A nested user namespace has capabilities of its own, but its copies of the
// mounts are locked.
//
// Root keeps CAP_SETFCAP: without it, it cannot map itself in a nested namespace. Programs
// can gain at most the capabilities of the bounding set, which is this one.
func dropCapabilities() error {
	keep := uintptr(unix.CAP_LAST_CAP + 1)
	if os.Getuid() == 0 {
		keep = unix.CAP_SETFCAP
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	for capability := range uintptr(64) {
		if capability == keep {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("bounding capabilities: %w", err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if keep <= unix.CAP_LAST_CAP {
		sets[keep/32].Permitted = 1 << (keep % 32)
		sets[keep/32].Effective = sets[keep/32].Permitted
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	return nil
}

// serve starts the program, and collects ended processes until the program ends.
// It returns the program's exit status.
func serve(text string) (int, error) {
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return 0, err
	}
	if err := box.HideProcess(); err != nil {
		return 0, err
	}
	program := 3 + s.Files
	unix.CloseOnExec(program)
	if s.Limited {
		unix.CloseOnExec(program + 1)
		unix.CloseOnExec(program + 2)
		go endWith(program+1, program+2)
	}
	cmd := &exec.Cmd{Path: fmt.Sprintf("/proc/self/fd/%d", program), Args: s.Args, Stdin: os.Stdin, Stdout: os.Stdout,
		Stderr: os.Stderr}
	for i := range s.Files {
		cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(3+i), "inherited"))
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for _, f := range cmd.ExtraFiles {
		f.Close() // only the program uses it
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case pid != cmd.Process.Pid:
		case status.Exited():
			return status.ExitStatus(), nil
		case status.Signaled():
			return 128 + int(status.Signal()), nil
		}
	}
}
