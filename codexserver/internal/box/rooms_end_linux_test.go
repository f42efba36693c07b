package box_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// endVar has the folder of a command in a process that stands for the server.
const endVar = "BOX_TEST_END"

// TestRoomsEnd kills the server, the launcher, or both. Nothing is left of the command, whose daemons have sessions of their
// own and ignore signals.
func TestRoomsEnd(t *testing.T) {
	boxtest.NeedRooms(t)
	if dir := os.Getenv(endVar); dir != "" {
		script := `for i in 1 2 3; do setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' & done; kill -STOP 1; kill -9 1; echo up; sleep 1000`
		cmd := &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Stdout: os.Stdout}
		words := must.Get(confine(t, write(), dir).Apply(cmd))(t)
		must.Get((&run.Starter{}).Start(t.Context(), cmd, words))(t)
		<-time.After(time.Minute)
		return
	}
	for _, who := range []string{"server", "launcher", "both"} {
		t.Run(who, func(t *testing.T) {
			dir := tree(t)
			server := exec.Command("/proc/self/exe", "-test.run=^TestRoomsEnd$")
			server.Env = append(os.Environ(), endVar+"="+dir)
			out := must.Get(server.StdoutPipe())(t)
			must.OK(t, server.Start())
			r := bufio.NewReader(out)
			must.Equal(t, "the command", "up\n", must.Get(r.ReadString('\n'))(t))
			launcher := childOf(t, server.Process.Pid)
			if who != "server" {
				must.OK(t, syscall.Kill(launcher, syscall.SIGKILL))
			}
			if who != "launcher" {
				must.OK(t, server.Process.Kill())
			}
			if who != "launcher" { // else the server has its own end of the output
				must.Get(io.Copy(io.Discard, r))(t) // to the end of the last who could write
			}
			for until := time.Now().Add(20 * time.Second); len(in(dir)) > 0 && time.Now().Before(until); {
				<-time.After(time.Millisecond)
			}
			must.Equal(t, "left", 0, len(in(dir)))
			_ = server.Process.Kill()
			_ = server.Wait() // it was killed
		})
	}
}

// in returns the processes that work in a folder.
func in(dir string) (pids []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == dir {
			pids = append(pids, link)
		}
	}
	return pids
}

func childOf(t *testing.T, parent int) int {
	t.Helper()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		b, _ := os.ReadFile(file)
		if fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			return must.Get(strconv.Atoi(filepath.Base(filepath.Dir(file))))(t)
		}
	}
	t.Fatal("no launcher")
	return 0
}
