package tool_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/tool"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/google/go-cmp/cmp"
)

// secret is in a file that only a descriptor of the server leads to. variable is in the
// environment of the server, as /proc has it.
const (
	secret   = "sk-of-the-server"
	variable = "PATH=/"
)

// attacked makes a working folder with everything that a command can put into one, and a folder
// beside it.
func attacked(t *testing.T) (work string) {
	t.Helper()
	top := boxtest.Folder(t)
	work = filepath.Join(top, "work")
	boxtest.Lay(t, top,
		"outside/rc=one\n", "work/sub/", "work/file=one\n", "work/.git/config=one\n", "work/.git/hooks/pre-commit=one\n", "work/soft -> ../outside/rc", "work/dir -> ../outside",
		"work/environ -> /proc/self/environ", "work/self -> /proc/self", "work/zero -> /dev/zero", "work/huge")
	in := func(name string) string { return filepath.Join(top, name) }
	unnamed, err := os.Create(in("gone"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unnamed.Close() })
	socket, err := net.Listen("unix", in("work/socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	_, err = unnamed.WriteString(secret)
	for _, err := range []error{
		err,
		os.Remove(in("gone")),
		os.Link(in("outside/rc"), in("work/hard")),
		os.Symlink(fmt.Sprintf("/proc/self/fd/%d", unnamed.Fd()), in("work/handle")),
		syscall.Mkfifo(in("work/fifo"), 0o666),
		os.Truncate(in("work/huge"), 1<<40),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return work
}

// TestFileToolAttacks has what a model could try with the file tools in the real sandbox. What a
// command could not read or write, these cannot; nothing hangs.
func TestFileToolAttacks(t *testing.T) {
	boxtest.Need(t)
	for _, mode := range []protocol.SandboxMode{protocol.SandboxReadOnly, protocol.SandboxWorkspaceWrite, protocol.SandboxDangerFullAccess} {
		t.Run(string(mode), func(t *testing.T) {
			work := attacked(t)
			h := &host{}
			turn := turnOf(tool.Options{Environ: environ, FileTools: true, Sandbox: tool.Confine(box.New(box.Options{}))}, h, work, protocol.ApprovalNever, mode)
			call := func(name string, arguments map[string]any) string {
				t.Helper()
				text, err := json.Marshal(arguments)
				if err != nil {
					t.Fatal(err)
				}
				res := called(t, turn, tool.Call{ID: "c", Name: name, Arguments: string(text)})
				if strings.Contains(res.Output, secret) || strings.Contains(res.Output, variable) {
					t.Errorf("%s %s returns the secret: %q", name, text, res.Output)
				}
				return res.Output
			}
			before := tree(t, filepath.Dir(work))
			// The process hides from others of its user, so that only root gets further than the system's own refusal.
			refused := func(got, want string) bool {
				return strings.Contains(got, want) || want == "in /proc" && os.Getuid() != 0 && strings.Contains(got, "permission denied")
			}
			for path, want := range map[string]string{
				"/proc/self/environ": "in /proc", "environ": "in /proc", "self/environ": "in /proc", "self/root/proc/self/environ": "", "/proc/thread-self/environ": "in /proc",
				fmt.Sprintf("/proc/%d/environ", os.Getpid()): "in /proc", "/proc/self/mem": "in /proc", "/proc/self/maps": "in /proc",
				"handle": "does not exist", "fifo": "a named pipe", "zero": "a device", "socket": "a socket", "/dev/tty": "a device", "huge": "too large", "sub": "a folder", "sub\x00": "not a file name",
			} {
				if got := call("read", map[string]any{"path": path}); !refused(got, want) {
					t.Errorf("read %q: %q lacks %q", path, got, want)
				}
				if got := call("edit", map[string]any{"path": path, "old": "\x00PATH", "new": "x"}); !refused(got, want) {
					t.Errorf("edit %q: %q lacks %q", path, got, want)
				}
				if got := call("search", map[string]any{"path": path, "pattern": "sk-of|P[A]TH="}); strings.Contains(got, "sk-of-") {
					t.Errorf("search %q: %q", path, got)
				}
				if path != "handle" { // its target could be made
					call("write", map[string]any{"path": path, "content": "x\n"})
				}
				call("list", map[string]any{"path": path})
			}
			call("search", map[string]any{"pattern": "sk-of|P[A]TH=."})
			for _, path := range []string{"self/fd", "/proc/self/task", "self"} {
				if got := call("list", map[string]any{"path": path}); !strings.Contains(got, "in /proc") {
					t.Errorf("list %q: %q", path, got)
				}
			}
			if mode != protocol.SandboxDangerFullAccess {
				for _, path := range []string{
					"../outside/rc", "soft", "dir/rc", "dir/new", "hard", ".git/config", ".git/hooks/pre-commit", ".git/hooks/new", "sub/../.git/new",
					".vscode/tasks.json", ".envrc", ".codex/config.toml", "/etc/codex-test", "/proc/self/comm", "/dev/shm/../codex-test",
				} {
					call("read", map[string]any{"path": path})
					for name, arguments := range map[string]map[string]any{
						"write": {"path": path, "content": "two\n"}, "edit": {"path": path, "old": "one", "new": "two"},
					} {
						if got := call(name, arguments); strings.HasPrefix(got, "Success") {
							t.Errorf("%s %s: %q", name, path, got)
						}
					}
				}
			}
			if diff := cmp.Diff(before, tree(t, filepath.Dir(work))); diff != "" {
				t.Errorf("files changed (-before +after)\n%s", diff)
			}
			want := mode != protocol.SandboxReadOnly
			if got := call("edit", map[string]any{"path": "file", "old": "one", "new": "two"}); strings.HasPrefix(got, "Success") != want {
				t.Errorf("an edit that the mode allows: %t; %q", want, got)
			}
			if steps := h.steps(); strings.Contains(steps, "ask") {
				t.Errorf("steps %s", steps)
			}
		})
	}
}

// TestReadInARace reads and searches files that change into links, pipes and folders meanwhile.
func TestReadInARace(t *testing.T) {
	boxtest.Need(t)
	work := attacked(t)
	h := &host{}
	turn := turnOf(tool.Options{Environ: environ, FileTools: true, Sandbox: tool.Confine(box.New(box.Options{}))}, h, work, protocol.ApprovalNever, protocol.SandboxReadOnly)
	stop := make(chan struct{})
	var swaps sync.WaitGroup
	swaps.Go(func() {
		target := filepath.Join(work, "sub", "target")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			next := filepath.Join(work, "next")
			switch i % 4 {
			case 0:
				_ = os.WriteFile(next, []byte("one\n"), 0o666)
			case 1:
				_ = os.Symlink("/proc/self/environ", next)
			case 2:
				_ = syscall.Mkfifo(next, 0o666)
			case 3:
				_ = os.Symlink(filepath.Join(work, "handle"), next)
			}
			_ = os.Rename(next, target)
		}
	})
	defer swaps.Wait()
	defer close(stop)
	for range nightly.Number(40, 200) {
		for name, arguments := range map[string]string{
			"read": `{"path":"sub/target"}`, "search": `{"path":"sub","pattern":"sk-|P[A]TH=|one"}`, "edit": `{"path":"sub/target","old":"sk-","new":"x"}`,
		} {
			res, err := turn.Call(t.Context(), tool.Call{ID: "c", Name: name, Arguments: arguments})
			if err != nil || strings.Contains(res.Output, secret) || strings.Contains(res.Output, variable) {
				t.Fatalf("%s: %q, %v", name, res.Output, err)
			}
		}
	}
}
