package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// TestServerOfAKilledHost kills what has started servers, whose input this test holds open. Only those end that it was
// the host of: other programs had started them and ended at once, or are still there.
func TestServerOfAKilledHost(t *testing.T) {
	testenv.NeedsPrograms(t, "setsid")
	t.Parallel()
	const server = `"$0" "$@" <&3 3<&- &`
	rows := []struct {
		name, script string
		known, ends  bool
		p            *process
	}{
		{name: "a host", script: "exec 3<&0; " + server + " wait", known: true, ends: true},
		{name: "a host and setsid", script: "exec 3<&0; setsid " + server + " wait", known: true, ends: true},
		{name: "sh -c 'codex-mcp &'", script: "exec 3<&0; " + server},
		{name: "setsid that ends", script: "setsid -f \"$0\" \"$@\""},
		{name: "a shim as npx", known: true,
			script: `exec 4<&0; sh -c 'exec 3<&0; ` + server + ` wait' "$0" "$@" <&4 & wait`},
	}
	for i := range rows {
		f, _ := prepare(t, "never")
		p := launch(t, f, exec.Command("sh", "-c", rows[i].script, built(t), "--engine", "native", "--log", "debug"))
		p.hello(`{}`)
		rows[i].p = p
	}
	for _, row := range rows {
		until(t, row.name+": the server does not say whether it knows its host", func() bool {
			return strings.Contains(row.p.errors(), "with its host")
		})
		known := strings.Contains(row.p.errors(), "the server ends with its host")
		must.Equal(t, row.name+": knows its host", row.known, known)
	}
	for _, row := range rows {
		if err := row.p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
	for _, row := range rows {
		if row.ends {
			row.p.wait()
		}
	}
	for _, row := range rows { // those that live are as old as those that have ended
		if !row.ends {
			row.p.send(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
			row.p.expect(map[string]any{"id": 7.0, "result": map[string]any{}})
			_ = row.p.stdin.Close()
			row.p.wait()
		}
	}
}

// TestServerInAContainer starts servers as process 1 of a PID namespace, and by that process: neither knows a host.
func TestServerInAContainer(t *testing.T) {
	if !boxtest.IsRoot() {
		t.Skip("only root can make a PID namespace everywhere")
	}
	t.Parallel()
	for name, script := range map[string]string{
		"process 1":               `exec "$0" "$@"`,
		"started by process 1":    `exec 3<&0; "$0" "$@" <&3 3<&- & wait`,
		"left behind, adopted":    `exec 3<&0; sh -c '"$0" "$@" <&3 3<&- &' "$0" "$@"; exec sleep 1000 3<&-`,
		"in a session of its own": `exec 3<&0; setsid "$0" "$@" <&3 3<&- & wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := prepare(t, "never")
			script := "mount -t proc proc /proc && " + script
			cmd := exec.Command("sh", "-c", script, built(t), "--engine", "native", "--log", "debug")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Unshareflags: unix.CLONE_NEWNS}
			p := launch(t, f, cmd)
			p.hello(`{}`)
			until(t, "the server does not say that it does not know its host", func() bool {
				return strings.Contains(p.errors(), "does not end with its host")
			})
		})
	}
}

// TestOrphan has an orphan of this process, which says who adopts it.
func TestOrphan(t *testing.T) {
	for _, adopts := range []int{0, 1} {
		must.OK(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(adopts), 0, 0, 0))
		cmd := &exec.Cmd{Path: built(t), Args: []string{orphanName}, Env: []string{}, Dir: "/"}
		said := must.Get(cmd.Output())(t)
		if got := strings.TrimSpace(string(said)) == strconv.Itoa(os.Getpid()); got != (adopts == 1) {
			t.Errorf("as a subreaper %d: adopted by %q, and this is %d", adopts, said, os.Getpid())
		}
	}
	must.OK(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0))
}
