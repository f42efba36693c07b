package group_test

import (
	"errors"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/group"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// role says what this program is in place of a test.
const role = "GROUP_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "parent": // leaves a child
		if err := as("child").Start(); err != nil {
			log.Fatal(err)
		}
	case "server": // starts a group, and does not end by itself
		cmd := as("parent")
		g, err := group.Start(cmd, true)
		if err = errors.Join(err, cmd.Wait()); err != nil {
			log.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("ready\n")
		wait()
		runtime.KeepAlive(g)
	case "child":
		_, _ = os.Stdout.WriteString("child\n")
		wait()
	}
}

// wait waits until the process is killed.
func wait() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, os.Interrupt) // else the runtime would report a deadlock
	<-never
}

// as returns this program in a role.
func as(name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"="+name)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd
}

// TestKill checks that a child which its parent has left is of the group, and ends with it.
func TestKill(t *testing.T) {
	for _, session := range []bool{true, false} {
		testKill(t, session)
	}
}

func testKill(t *testing.T, session bool) {
	cmd := as("parent")
	out := output(t, cmd)
	g := must.Get(group.Start(cmd, session))(t)
	_ = cmd.Stdout.(io.Closer).Close()
	must.OK(t, cmd.Wait())
	want(t, out, "child\n")
	if g.Empty() {
		t.Error("the group has no process while the child runs")
	}
	g.Kill()
	if _, err := out.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the child's output: %v", err)
	}
	for !g.Empty() { // soon after, or at no time, which the time limit of the test ends
		runtime.Gosched()
	}
}

// output returns what a command and its children will write. The other end is open here, too.
func output(t *testing.T, cmd *exec.Cmd) *os.File {
	t.Helper()
	out, in, err := os.Pipe()
	must.OK(t, err)
	t.Cleanup(func() { _ = out.Close() })
	cmd.Stdout = in
	return out
}

// want reads what a number of processes say.
func want(t *testing.T, out io.Reader, lines ...string) {
	t.Helper()
	got := make([]byte, len(strings.Join(lines, "")))
	if _, err := io.ReadFull(out, got); err != nil || !slices.Equal(slices.Sorted(strings.Lines(string(got))), lines) {
		t.Fatalf("%q, %v, want %q in any order", got, err, lines)
	}
}
