package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestForkBomb runs a confined command that uses up all processes that its user may have, once
// also without the process that keeps it. The server survives, and the next command runs.
func TestForkBomb(t *testing.T) {
	for _, tt := range []struct {
		name    string
		killed  bool // the launcher
		timeout int  // of the bomb, in ms
	}{
		{name: "bounded", timeout: 500},
		{name: "launcher killed", killed: true, timeout: 30_000}, // so long it may grow
	} {
		t.Run(tt.name, func(t *testing.T) {
			boxtest.Need(t)
			user := os.Getuid()
			if user == 0 {
				user = 40_000 + os.Getpid()%20_000 // who has no other processes; a container may have 65,536 users
			}
			f := foldersOf(t, user)
			limit := threadsOf(t, user) + 150
			bomb := fmt.Sprintf(`ulimit -Su %d; bomb() { bomb | bomb & }; bomb 2> /dev/null; while :; do bomb 2> /dev/null; done`, limit)
			model := providertest.New(
				providertest.Call(providertest.Tool("c1", "shell", map[string]any{"command": []string{"bash", "-c", bomb}, "timeout_ms": tt.timeout})),
				providertest.Call(providertest.Shell("c2", "sh", "-c", "echo still; echo here")),
				providertest.Say("done"))
			t.Cleanup(model.Close)
			config := "approval_policy = \"never\"\n" + fmt.Sprintf(configOf, model.BaseURL())
			if err := os.WriteFile(filepath.Join(f.home, "config.toml"), []byte(config), 0o644); err != nil {
				t.Fatal(err)
			}
			p := launch(t, f, as(user, exec.Command("bash", "-c", `ulimit -u "$0"; exec "$@"`, strconv.Itoa(limit),
				everybodys(t), "-engine", "native", "-c", "sandbox_mode=workspace-write", "-c", "sandbox_workspace_write.exclude_slash_tmp=true")))
			p.send(`{"jsonrpc":"2.0","id":"turn","method":"tools/call","params":{"name":"codex","arguments":{"prompt":"go"}}}`)
			seen := map[int]bool{}
			p.expect(map[string]any{"method": "codex/event", "params": map[string]any{"msg": map[string]any{"type": "exec_command_begin"}}}, seen)
			if tt.killed {
				grown := func() bool { return threadsOf(t, user) > limit/2 }
				for deadline := time.Now().Add(time.Minute); !grown(); {
					if time.Now().After(deadline) {
						t.Fatal("the bomb does not grow")
					}
				}
				if err := syscall.Kill(launcherOf(t, p.cmd.Process.Pid), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			for id := range 60 { // work that takes threads
				p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"fuzzyFileSearch","params":{"query":"x","roots":["/etc"]}}`, id))
			}
			for id := range 60 {
				p.expect(map[string]any{"id": float64(id), "result": "*"}, seen)
			}
			p.expect(map[string]any{"id": "turn", "result": map[string]any{"structuredContent": map[string]any{"content": "done"}}}, seen)
			// The orphans of a killed launcher count until the system's first process collects them.
			if output := model.Requests()[2].LastToolOutput(); !strings.Contains(output, "still") && !tt.killed {
				t.Errorf("after the bomb a command printed %s\nthe bomb: %s", output, model.Requests()[1].LastToolOutput())
			}
			p.stdin.Close()
			p.wait()
			if left := threadsOf(t, user); user != os.Getuid() && left > 0 {
				t.Errorf("%d threads are left", left)
			}
		})
	}
}

// launcherOf returns the child of a process that keeps its command.
func launcherOf(t *testing.T, server int) int {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", server))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(b)) {
			if name, err := os.ReadFile("/proc/" + child + "/comm"); err == nil && strings.HasPrefix(string(name), "codex-mcp-laun") {
				pid, err := strconv.Atoi(child)
				if err != nil {
					t.Fatal(err)
				}
				return pid
			}
		}
	}
	t.Fatal("the server has no launcher")
	return 0
}

// openFolder makes a folder that every user can enter, since TMPDIR may be in a private
// folder.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "codex-mcp-open")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// everybodys returns a copy of the program that every user can run.
func everybodys(t *testing.T) string {
	t.Helper()
	bin := built(t)
	whole, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(openFolder(t), filepath.Base(bin))
	syscall.ForkLock.RLock() // a child that another test starts meanwhile would have it open for writing, so it could not run
	err = os.WriteFile(open, whole, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	return open
}

// foldersOf makes folders that belong to a user. When the test fails the user's
// processes are killed, if that is another user than this one.
func foldersOf(t *testing.T, user int) folders {
	t.Helper()
	tmp := openFolder(t)
	t.Cleanup(func() {
		for user != os.Getuid() && threadsOf(t, user) > 0 { // when the test failed
			_ = as(user, exec.Command("sh", "-c", "kill -KILL -1")).Run()
		}
	})
	f := folders{home: filepath.Join(tmp, "home"), cwd: filepath.Join(tmp, "work"), user: filepath.Join(tmp, "user")}
	for _, dir := range []string{f.home, f.cwd, f.user} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, user, -1); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// as makes a command run as a user, who may be this one.
func as(user int, cmd *exec.Cmd) *exec.Cmd {
	if user != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	}
	return cmd
}

// threadsOf counts the live threads of a user.
func threadsOf(t *testing.T, user int) (n int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile(task)
		if err == nil && strings.Contains(string(b), fmt.Sprintf("\nUid:\t%d\t", user)) && !strings.Contains(string(b), "\nState:\tZ") {
			n++
		}
	}
	return n
}
