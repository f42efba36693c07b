package box_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// works are what people do in a day, each with a control outside.
var works = []struct{ name, program, script string }{
	{"a terminal", "python3", `import pty; m, s = pty.openpty(); import os; os.write(s, b"well"); print(os.read(m, 4).decode())`},
	{"script", "sh", `script -qec 'tty >/dev/null && echo well' /dev/null | tr -d '\r'`},
	{"a semaphore", "python3", `import multiprocessing as m; m.Lock(); print("well")`},
	{"a pool of processes", "python3", `import multiprocessing as m
p = m.get_context("fork").Pool(2); print("well" if p.map(abs, [-1, -2]) == [1, 2] else "no")`},
	{"shared memory", "python3", `from multiprocessing import shared_memory as s
m = s.SharedMemory(create=True, size=4096); m.buf[:4] = b"well"; print(bytes(m.buf[:4]).decode()); m.close(); m.unlink()`},
	{"a queue", "python3", `import ctypes, os
c = ctypes.CDLL(None, use_errno=True); n = b"/codex-mcp-test-%d" % os.getpid(); q = c.mq_open(n, os.O_CREAT | os.O_RDWR, 0o600, None); print("well" if q >= 0 and c.mq_unlink(n) == 0 else ctypes.get_errno())`},
	{"memory of System V", "python3", `import ctypes
c = ctypes.CDLL(None); i = c.shmget(0, 4096, 0o1600); print("well" if i >= 0 and c.shmctl(i, 0, None) == 0 else "no")`},
	{"semaphores of System V", "python3", `import ctypes
c = ctypes.CDLL(None); i = c.semget(0, 1, 0o1600); print("well" if i >= 0 and c.semctl(i, 0, 0, 0) == 0 else "no")`},
	{"a server on 127.0.0.1", "python3", `import socket
for family, host in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"):
    l = socket.create_server((host, 0), family=family); c = socket.create_connection(("127.0.0.1", l.getsockname()[1])); c.sendall(b"x")
print("well" if l.accept()[0].recv(1) == b"x" else "no")`},
	{"a server on localhost by name", "python3", `import socket
l = socket.create_server(("localhost", 0)); c = socket.create_connection(("localhost", l.getsockname()[1])); print("well")`},
	{"datagrams", "python3", `import socket
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "ab"); a.bind(("127.0.0.1", 0)); b.sendto(b"well", a.getsockname()); print(a.recv(4).decode())`},
	{"a web server", "python3", `import http.server, threading, urllib.request
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler); threading.Thread(target=s.serve_forever, daemon=True).start()
print("well" if urllib.request.build_opener(urllib.request.ProxyHandler({})).open("http://127.0.0.1:%d/" % s.server_port).status == 200 else "no")`},
	{"asyncio", "python3", `import asyncio
async def main():
    s = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0); r, w = await asyncio.open_connection(*s.sockets[0].getsockname()); print("well" if await r.read() == b"" else "no")
asyncio.run(main())`},
	{"names of interfaces", "python3", `import socket; print("well" if "lo" in [n for _, n in socket.if_nameindex()] else "no")`},
	{"signals in a group", "bash", `set -m; trap 'echo well; trap - TERM; exit 0' TERM; sleep 100 & kill -TERM 0; wait`},
	{"a process of its own in /proc", "bash", `[ "$(cat /proc/$$/comm)" = bash ] && echo well`},
	{"a child that outlives its parent", "bash", `(sleep 0.2; echo well) & wait`},
	{"git", "bash", `export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
rm -rf r; git init -q r && cd r && echo x >a && git add a && git commit -qm a && git switch -qc b && git stash list && git worktree add -q ../w$$ && echo well`},
}

// TestWork does a day's work in the sandbox, in each mode, and without one.
func TestWork(t *testing.T) {
	boxtest.NeedRooms(t)
	base := tree(t, "work/", "home/")
	for _, w := range works {
		t.Run(w.name, func(t *testing.T) {
			path, err := exec.LookPath(w.program)
			if err != nil {
				t.Skip(err)
			}
			if w.program == "python3" { // itself, where a script starts it
				path = strings.TrimSpace(string(must.Get(exec.Command(path, "-c", "import sys; print(sys.executable)").Output())(t)))
			}
			spec := run.Spec{Argv: []string{path, "-c", w.script}, Dir: base + "/work", Timeout: time.Minute}
			spec.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + base + "/home", "PYTHONDONTWRITEBYTECODE=1"}
			check := func(where string) {
				t.Helper()
				if res := ran(t, spec); res.Stdout != "well\n" {
					t.Errorf("%s: exit code %d: %s", where, res.ExitCode, res.Aggregated)
				}
			}
			check("outside")
			spec.Confinement = confine(t, write(), base+"/work")
			check("in workspace-write")
			if w.name != "git" {
				spec.Confinement = confine(t, readOnly, base+"/work")
				check("in read-only")
			}
		})
	}
	must.Equal(t, "left in the home", 0, len(must.Get(os.ReadDir(base+"/home"))(t)))
}

// TestWorkAsUser does it as a user.
func TestWorkAsUser(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { boxtest.AsUser(t, cmd, os.TempDir()) }, TestWork)
}

// TestNothingIsLost looks what a command with rooms inherits, and how its end is told.
func TestNothingIsLost(t *testing.T) {
	boxtest.NeedRooms(t)
	dir := tree(t)
	for _, tt := range []struct {
		script string
		want   string
		code   int
	}{
		{"exit 3", "", 3}, {"kill -9 $$", "", 137}, {"kill -TERM $$", "", 143}, {"(sleep 100 &); exit 4", "", 4}, {"sleep 100 & echo up; exit 5", "up\n", 5},
		{"kill -STOP 1; kill -KILL 1; kill -TERM 1; echo up", "up\n", 0}, {"setsid -w sh -c 'exit 6'", "", 6},
		{"grep -E '^Sig(Ign|Blk)' /proc/self/status | tr -d '\\t\\n'; umask", "SigBlk:0000000000000000SigIgn:00000000000000000022\n", 0},
		{"grep -c . /proc/self/uid_map; ls /proc/self/fd | wc -l", "1\n4\n", 0},
		{"exec no-such-program", "", 127},
	} {
		begin := time.Now()
		script := "umask 022; " + tt.script
		res := ran(t, run.Spec{
			Argv: []string{"bash", "-c", script}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Confinement: confine(t, readOnly, dir), Timeout: time.Minute,
		})
		if res.ExitCode != tt.code || res.Stdout != tt.want || time.Since(begin) > 30*time.Second {
			t.Errorf("%s: %d %q after %v", tt.script, res.ExitCode, res.Aggregated, time.Since(begin))
		}
	}
	_, err := boxtest.Starter(t).Run(t.Context(), run.Spec{Argv: []string{"/etc/passwd"}, Dir: dir, Confinement: confine(t, readOnly, dir)}, nil)
	must.Equal(t, "a file that is no program", true, err != nil && strings.Contains(err.Error(), "permission denied"))
	without, with := exec.Command("bash", "-c", "ulimit -Sa; ulimit -Ha"), run.Spec{Argv: []string{"bash", "-c", "ulimit -Sa; ulimit -Ha"}, Dir: dir, Env: os.Environ(), Confinement: confine(t, readOnly, dir)}
	must.Equal(t, "limits", withoutProcesses(string(must.Get(without.Output())(t))), withoutProcesses(ran(t, with).Stdout))
}

// withoutProcesses leaves out the limit of processes, of which a command gets fewer.
func withoutProcesses(limits string) (rest string) {
	for line := range strings.Lines(limits) {
		if !strings.Contains(line, "max user processes") {
			rest += line
		}
	}
	return rest
}

// TestRoomsRefused furnishes no rooms where a mount is refused, as AppArmor does, and says what would help.
func TestRoomsRefused(t *testing.T) {
	boxtest.RunInSubprocess(t, func(cmd *exec.Cmd) { boxtest.WithoutRooms(t, cmd) }, func(t *testing.T) {
		err := box.RoomsAvailable()
		if err == nil || !strings.Contains(err.Error(), "clone: ") || !strings.Contains(err.Error(), "in a container") {
			t.Errorf("%v", err)
		}
	})
}
