package shared_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/shared"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
)

// forge listens in the place of a server and prints what a client says after the greeting. The
// words of the command line say what it does before.
func forge(words []string) error {
	home, dir := os.Getenv("SHARED_TEST_HOME"), "."
	for i, word := range words {
		switch word {
		case "confined": // as every command in a sandbox
			runtime.LockOSThread()
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return err
			}
			return syscall.Exec("/proc/self/exe", append([]string{os.Args[0]}, words[i+1:]...), os.Environ())
		case "claims": // as none can that cannot write the folder
			f, err := shared.Open(home)
			if err == nil {
				err = f.Claim("test")
			}
			if err != nil {
				return err
			}
		case "elsewhere":
			dir = os.Getenv("SHARED_TEST_ELSEWHERE")
		}
	}
	if dir == "." {
		dir = filepath.Join(home, "codex-mcp", "run")
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	if err := os.RemoveAll("test.sock"); err != nil {
		return err
	}
	l, err := net.Listen("unix", "test.sock")
	if err != nil {
		return err
	}
	fmt.Println("listening")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		fmt.Fprintf(c, `{"server":"codex-mcp","frame":1%s}`+"\n", os.Getenv("SHARED_TEST_SAYS"))
		said, _ := io.ReadAll(c)
		fmt.Printf("a client said %q\n", said)
	}
}

// TestForged lets others listen in the place of the server. The client learns who they are before it says anything.
func TestForged(t *testing.T) {
	for _, test := range []struct {
		name, forger string
		says         string                       // in the greeting
		before       func(t *testing.T, p *place) // there is a server before, if not nil
		want         string                       // part of the error; "" if the client gets a server
	}{
		{name: "no server before", want: "not the one that its folder names"},
		{name: "one that refuses", says: `,"refused":"run this"`, want: "not the one that its folder names"},
		{name: "a killed server before", want: "not the one that its folder names", before: func(t *testing.T, p *place) {
			c := p.must("")
			must.OK(t, syscall.Kill(c.PID(), syscall.SIGKILL))
			io.Copy(io.Discard, c)
		}},
		{name: "a server that runs", want: "not the one that its folder names", before: func(t *testing.T, p *place) {
			c := p.must("")
			t.Cleanup(func() { syscall.Kill(c.PID(), syscall.SIGKILL) }) // nobody finds it any more
		}},
		{name: "from a sandbox, into a folder that commands can write", forger: "confined claims", want: "in another sandbox"},
		{name: "in a folder that takes the name of the open one", forger: "elsewhere", before: func(t *testing.T, p *place) {
			c := p.must("")
			must.OK(t, os.Rename(p.path, p.path+"2"))
			t.Cleanup(func() { syscall.Kill(c.PID(), syscall.SIGKILL) })
			must.OK(t, os.Mkdir(p.path, 0o700))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlace(t)
			if test.before != nil {
				test.before(t, p)
			}
			cmd := exec.Command(os.Args[0], strings.Fields(test.forger)...)
			cmd.Env = append(append(os.Environ(), p.env...), role+"=forger", "SHARED_TEST_SAYS="+test.says, "SHARED_TEST_ELSEWHERE="+p.path)
			out := must.Get(cmd.StdoutPipe())(t)
			cmd.Stderr = os.Stderr
			must.OK(t, cmd.Start())
			stop := sync.OnceValue(func() string {
				cmd.Process.Kill()
				said, _ := io.ReadAll(out)
				_ = cmd.Wait()
				return string(said)
			})
			defer stop()
			must.Get(io.ReadFull(out, make([]byte, len("listening\n"))))(t)
			c, err := p.connect("/secret")
			must.Fail(t, "the client", test.want, err)
			if err != nil && strings.Contains(err.Error(), "run this") {
				t.Errorf("its words are passed on: %v", err)
			}
			if err == nil {
				c.Close()
			}
			if _, err := p.Ask(t.Context(), "test", shared.Stop); test.want != "" && err == nil {
				t.Error("the forger is asked to end")
			}
			if said := stop(); strings.Contains(said, "secret") || strings.Contains(said, "want") {
				t.Errorf("the forger got %s", said)
			}
		})
	}
}

// TestLongHome shares a server whose home has a longer path than a socket may have.
func TestLongHome(t *testing.T) {
	home := filepath.Join(t.TempDir(), strings.Repeat("long", 30), strings.Repeat("home", 30))
	p := newPlaceIn(t, home)
	a, b := p.must("/a"), p.must("/b")
	if got, want := say(t, b, "x"), from(a.PID(), "/b"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
