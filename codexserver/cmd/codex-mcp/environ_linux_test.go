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

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestServerEnvironment looks for the server's keys in /proc, from outside before the first
// command and from a read-only command. As root it also tries as another user.
func TestServerEnvironment(t *testing.T) {
	t.Parallel()
	pry := must.Get(os.ReadFile("testdata/pry.sh"))(t)
	users := []int{os.Getuid()}
	if boxtest.IsRoot() {
		users = append(users, 20_000+os.Getpid()%20_000) // a container may have 65,536 users
	}
	for _, user := range users {
		t.Run(fmt.Sprint(user), func(t *testing.T) {
			boxtest.Need(t)
			f := foldersOf(t, user)
			other := as(user, exec.CommandContext(t.Context(), "sleep", "600"))
			must.OK(t, other.Start())
			t.Cleanup(func() { other.Process.Kill(); other.Wait() })
			model := providertest.New(
				providertest.Call(providertest.Shell("c1", "bash", "-c", string(pry), "pry", strconv.Itoa(other.Process.Pid))),
				providertest.Say("done"))
			t.Cleanup(model.Close)
			config := "approval_policy = \"never\"\n" + fmt.Sprintf(configOf, model.BaseURL())
			must.OK(t, os.WriteFile(filepath.Join(f.home, "config.toml"), []byte(config), 0o644))
			p := launch(t, f, as(user, exec.Command(everybodys(t), "--engine", "native", "-c", "sandbox_mode=read-only")))
			p.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
			p.expect(map[string]any{"id": "p", "result": map[string]any{}})
			out, err := as(user, exec.Command("cat", fmt.Sprintf("/proc/%d/environ", p.cmd.Process.Pid))).CombinedOutput()
			if err == nil && user != 0 { // root may
				t.Errorf("the server's environment can be read: %q", out)
			}
			p.run("go")
			output := model.Requests()[1].LastToolOutput()
			tried := strings.Count(output, "tried ")
			if box.RoomsAvailable() != nil { // else only the command's own processes are there
				tried = strings.Count(output, "tried codex-mcp") + strings.Count(output, "tried sleep")
			}
			if strings.Contains(output, "read ") || tried != 3 {
				t.Errorf("a read-only command printed %s", output)
			}
			p.stdin.Close()
			p.wait()
		})
	}
}

// openFolder makes a folder that every user can enter, since TMPDIR may be in a private folder.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "codex-mcp-open")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// everybodys returns a copy of the program that every user can run.
func everybodys(t *testing.T) string {
	t.Helper()
	bin := built(t)
	whole, err := os.ReadFile(bin)
	must.OK(t, err)
	open := filepath.Join(openFolder(t), filepath.Base(bin))
	must.OK(t, testenv.WriteProgram(open, whole))
	return open
}

// foldersOf makes folders that belong to a user.
func foldersOf(t *testing.T, user int) folders {
	t.Helper()
	f := foldersIn(t, openFolder(t))
	for _, dir := range []string{f.home, f.cwd, f.user} {
		must.OK(t, os.Chown(dir, user, -1))
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
