package jsonrpc_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

// TestMain lets the test binary be the child process of its tests.
func TestMain(m *testing.M) {
	if role := os.Getenv("JSONRPC_TEST_CHILD"); role != "" {
		os.Exit(child(role))
	}
	os.Exit(m.Run())
}

// child runs a child process in a role.
func child(role string) int {
	switch role {
	case "ignores both": // the end of its input and SIGTERM
		signal.Ignore(syscall.SIGTERM)
		fallthrough
	case "ignores input", "leaves a child": // the first ends only by SIGTERM, the second with its input
		grandchild := exec.Command("sleep", "1000")
		grandchild.ExtraFiles = []*os.File{os.NewFile(3, "alive")}
		if err := grandchild.Start(); err != nil {
			return 4
		}
		fmt.Println(`{"jsonrpc":"2.0","method":"ready"}`)
		if role == "leaves a child" {
			_, _ = io.Copy(io.Discard, os.Stdin)
			return 0
		}
		for {
			time.Sleep(time.Hour) // nothing else could wake it, which without cgo ends the process
		}
	case "crash":
		return 3
	}
	t := jsonrpc.Stdio()
	fmt.Println("a stray print")
	stray := exec.Command("echo", "a stray child")
	stray.Stdout = os.NewFile(1, "descriptor 1")
	_ = stray.Run() // its print is missing then
	m := echoMux()
	jsonrpc.Handle(m, "print", func(context.Context, struct{}) (string, error) {
		fmt.Println("another stray print")
		return "printed", nil
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := jsonrpc.NewPeer(t, m, nil).Run(ctx)
	fmt.Println("print after the end")
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func childCommand(t *testing.T, role string) *exec.Cmd {
	t.Helper()
	exe := must.Get(os.Executable())(t)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "JSONRPC_TEST_CHILD="+role)
	return cmd
}

func TestCommandAndStdio(t *testing.T) {
	cmd := childCommand(t, "serve")
	var stderr bytes.Buffer // whole once the child has been waited for
	cmd.Stderr = &stderr
	tr, err := jsonrpc.Command(cmd, time.Minute)
	must.OK(t, err)
	p := jsonrpc.NewPeer(tr, nil, nil)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(context.Background()) }()
	var got text
	for _, n := range []int{1, 5000, 1 << 20} {
		want := text{strings.Repeat("x", n)}
		if err := p.Call(context.Background(), "echo", want, &got); err != nil || got != want {
			t.Fatalf("echo of %d bytes: %v", n, err)
		}
	}
	must.OK(t, p.Call(context.Background(), "print", nil, nil))
	must.OK(t, p.Close(), <-ended)
	must.Equal(t, "standard error", "a stray print\na stray child\nanother stray print\nprint after the end\n", stderr.String())
}

// TestCommandEnds checks that a child that does not end receives SIGTERM and then SIGKILL, and
// its children with it, which end also after a child that ends by itself.
func TestCommandEnds(t *testing.T) {
	t.Parallel() // it waits
	for role, want := range map[string]string{"ignores input": "signal: terminated", "ignores both": "signal: killed", "leaves a child": ""} {
		t.Run(role, func(t *testing.T) {
			grace := time.Second // enough time to end
			switch role {
			case "ignores both":
				grace = 50 * time.Millisecond
			case "leaves a child":
				grace = time.Minute
			}
			ready := make(chan struct{})
			m := new(jsonrpc.Mux)
			jsonrpc.HandleNotify(m, "ready", func(context.Context, struct{}) error { close(ready); return nil })
			alive, held, err := os.Pipe() // held by the child and its child until they end
			must.OK(t, err)
			cmd := childCommand(t, role)
			cmd.ExtraFiles = []*os.File{held}
			tr, err := jsonrpc.Command(cmd, grace)
			_ = held.Close()
			must.OK(t, err)
			p := jsonrpc.NewPeer(tr, m, nil)
			go func() { _ = p.Run(context.Background()) }()
			<-ready
			if err := p.Close(); (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
				t.Errorf("Close: %v", err)
			}
			<-p.Done()
			if _, err := io.ReadAll(alive); err != nil { // returns when no process is left
				t.Error(err)
			}
		})
	}
}

func TestCommandCrash(t *testing.T) {
	tr, err := jsonrpc.Command(childCommand(t, "crash"), 0)
	must.OK(t, err)
	p := jsonrpc.NewPeer(tr, nil, nil)
	var exit *exec.ExitError
	if err := p.Run(context.Background()); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("Run: %v", err)
	}
}

func TestCommandFaults(t *testing.T) {
	if _, err := jsonrpc.Command(exec.Command(filepath.Join(t.TempDir(), "nothing")), 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing program: %v", err)
	}
	for name, set := range map[string]func(*exec.Cmd){
		"an input":  func(c *exec.Cmd) { c.Stdin = os.Stdin },
		"an output": func(c *exec.Cmd) { c.Stdout = os.Stdout },
	} {
		cmd := childCommand(t, "crash")
		set(cmd)
		if _, err := jsonrpc.Command(cmd, 0); err == nil {
			t.Errorf("a command with %s was started", name)
		}
	}
}

// TestStdio runs the transport in this process, over what descriptors 0 and 1 may be:
// pipes, a socket pair as Node.js passes to its children, and plain files.
func TestStdio(t *testing.T) {
	for kind, open := range map[string]func(*testing.T) (in, out *os.File, other io.ReadWriteCloser){
		"pipe": pipeEnds, "blocking pipe": blockingEnds, "socket": socketEnds, "file": fileEnds,
	} {
		t.Run(kind, func(t *testing.T) {
			in, out, other := open(t)
			replace(t, in, out)
			tr := jsonrpc.Stdio()
			if open, err := exec.Command("ls", "-l", "/proc/self/fd").Output(); err != nil || kind == "file" && strings.Contains(string(open), out.Name()) {
				t.Errorf("%v: a child has the output open:\n%s", err, open)
			}
			p := jsonrpc.NewPeer(tr, echoMux(), &jsonrpc.Options{Hooks: &jsonrpc.Hooks{Problem: func(err error, _ []byte) {
				if err.Error() == "goroutines left behind at the end" {
					t.Error(err)
				}
			}}})
			ended := make(chan error, 1)
			go func() { ended <- p.Run(context.Background()) }()
			fmt.Println("a stray print of the test, which belongs on standard error")
			if kind == "file" {
				must.OK(t, <-ended)
				return
			}
			if _, err := io.WriteString(other, `{"jsonrpc":"2.0","id":1,"method":"raw","params":[1]}`+"\n"); err != nil {
				t.Fatal(err)
			}
			reader := bufio.NewReader(other)
			line, err := reader.ReadString('\n')
			if diff := cmp.Diff(`{"jsonrpc":"2.0","id":1,"result":[1]}`+"\n", line); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			must.OK(t, p.Notify(t.Context(), "unread", text{strings.Repeat("x", 1<<20)}))
			if _, err := reader.ReadByte(); err != nil { // it is being written
				t.Error(err)
			}
			// No end of input, and nobody reads on: Close alone must unblock the read and the write.
			must.OK(t, p.Close(), <-ended, other.Close())
		})
	}
}

// replace makes in and out the standard input and output until the test ends.
func replace(t *testing.T, in, out *os.File) {
	t.Helper()
	oldIn, oldOut := os.Stdin, os.Stdout
	saved := must.Get(syscall.Dup(1))(t)
	must.OK(t, syscall.Dup3(int(out.Fd()), 1, 0))
	os.Stdin = in
	t.Cleanup(func() {
		_ = syscall.Dup3(saved, 1, 0)
		_ = syscall.Close(saved)
		os.Stdin, os.Stdout = oldIn, oldOut
		_, _ = in.Close(), out.Close()
	})
}

type duplex struct {
	io.Reader
	io.WriteCloser
}

func pipeEnds(t *testing.T) (in, out *os.File, other io.ReadWriteCloser) {
	in, w, err := os.Pipe()
	r, out, err2 := os.Pipe()
	must.OK(t, err, err2)
	return in, out, duplex{r, w}
}

// blockingEnds are pipes in blocking mode, as a shell makes them.
func blockingEnds(t *testing.T) (in, out *os.File, other io.ReadWriteCloser) {
	var a, b [2]int
	must.OK(t, syscall.Pipe2(a[:], syscall.O_CLOEXEC), syscall.Pipe2(b[:], syscall.O_CLOEXEC))
	file := func(fd int) *os.File { return os.NewFile(uintptr(fd), "pipe") }
	return file(a[0]), file(b[1]), duplex{file(b[0]), file(a[1])}
}

func socketEnds(t *testing.T) (in, out *os.File, other io.ReadWriteCloser) {
	fds := must.Get(syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0))(t)
	ours := os.NewFile(uintptr(fds[0]), "ours")
	defer ours.Close()
	c := must.Get(net.FileConn(ours))(t)
	second := must.Get(syscall.Dup(fds[1]))(t)
	return os.NewFile(uintptr(fds[1]), "in"), os.NewFile(uintptr(second), "out"), c
}

func fileEnds(t *testing.T) (in, out *os.File, other io.ReadWriteCloser) {
	dir := t.TempDir()
	path := filepath.Join(dir, "in")
	must.OK(t, os.WriteFile(path, []byte(`{"jsonrpc":"2.0","id":1,"method":"raw"}`+"\n"), 0o600))
	in, err := os.Open(path)
	out, err2 := os.Create(filepath.Join(dir, "out"))
	must.OK(t, err, err2)
	t.Cleanup(func() {
		got, err := os.ReadFile(out.Name())
		if diff := cmp.Diff(`{"jsonrpc":"2.0","id":1,"result":null}`+"\n", string(got)); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
	return in, out, nil
}
