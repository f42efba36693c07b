//go:build linux || darwin

package shared_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/shared"
	"github.com/codexmcp/codexmcp/internal/memdir"
)

// role makes this program a process of a test.
const role = "SHARED_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(memdir.Run(m))
	case "server":
		serve()
	case "broken":
		os.Exit(3)
	case "forger":
		fmt.Fprintln(os.Stderr, forge(os.Args[1:]))
		os.Exit(1)
	case "thief": // asks for a link, as an orphan with more words
		if len(os.Args) > 3 {
			adopted()
		}
		f, err := shared.OpenPages(os.Getenv("SHARED_TEST_HOME"))
		if err == nil {
			var link string
			link, err = f.Link(context.Background(), os.Args[1])
			fmt.Println(link)
		}
		_ = os.WriteFile(os.Args[2], fmt.Append(nil, err), 0o600)
	case "client": // connects and prints what the server says
		if len(os.Args) > 1 { // it connects as an orphan
			adopted()
		}
		f, err := shared.Open(os.Getenv("SHARED_TEST_HOME"))
		if err == nil {
			var c *shared.Conn
			if c, err = f.Connect(context.Background(), "test", os.Getenv("SHARED_TEST_VERSION"), shared.Origin{}, func() *exec.Cmd { return exec.Command("false") }); err == nil {
				fmt.Println("connected to", c.PID())
			}
		}
		fmt.Println(err)
	}
}

// adopted waits until the server is the parent of this process.
func adopted() {
	for deadline := time.Now().Add(time.Minute); strconv.Itoa(os.Getppid()) != os.Getenv("SHARED_TEST_SERVER") && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// serve is a server that answers each line with its process id and the client's folder. To
// the line "run PROGRAM ARGS" it answers with what that command prints. After the line
// "work" it works until the file "done" in the client's folder exists.
func serve() {
	l, f, name, err := shared.Listener(os.Getenv("SHARED_TEST_HOME"))
	if err == nil {
		err = shared.Adopt()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	idle, _ := time.ParseDuration(os.Getenv("SHARED_TEST_IDLE"))
	working := make(chan int, 1)
	working <- 0
	add := func(n int) { working <- <-working + n }
	s := &shared.Server{
		Folder: f, Name: name, Version: os.Getenv("SHARED_TEST_VERSION"), Idle: idle, About: "a test",
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Working: func() int { n := <-working; working <- n; return n },
		Serve: func(ctx context.Context, conn io.ReadWriteCloser, from shared.Origin, left func()) {
			defer conn.Close()
			end := context.AfterFunc(ctx, func() { conn.Close() })
			defer end()
			lines := bufio.NewScanner(conn)
			for lines.Scan() {
				switch {
				case lines.Text() == "work":
					add(1)
					defer add(-1)
					defer func() {
						for ctx.Err() == nil {
							if _, err := os.Stat(filepath.Join(from.Folder, "done")); err == nil {
								return
							}
							time.Sleep(time.Millisecond)
						}
					}()
				case len(lines.Text()) > 4 && lines.Text()[:4] == "run ":
					cmd := exec.Command("sh", "-c", lines.Text()[4:])
					cmd.Env = append(os.Environ(), role+"=client", "SHARED_TEST_SERVER="+strconv.Itoa(os.Getpid()))
					out, err := cmd.CombinedOutput()
					fmt.Fprintf(conn, "%q %v\n", out, err)
					continue
				}
				fmt.Fprintf(conn, "%d %s %q\n", os.Getpid(), from.Folder, from.Environ)
			}
			left()
		},
	}
	if err := s.Run(context.Background(), l); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// place is a folder for the sockets of a test.
type place struct {
	*shared.Folder
	t    *testing.T
	path string // of the sockets
	env  []string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	return newPlaceIn(t, t.TempDir())
}

func newPlaceIn(t *testing.T, home string) *place {
	t.Helper()
	f, err := shared.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{Folder: f, t: t, path: filepath.Join(home, "codex-mcp", "run"), env: []string{"SHARED_TEST_HOME=" + home, "SHARED_TEST_IDLE=1h", "SHARED_TEST_VERSION=1"}}
	t.Cleanup(func() { f.Close() })
	t.Cleanup(func() {
		if _, err := p.Stop(context.Background(), "test"); err != nil && err != shared.ErrAbsent {
			t.Log("stop:", err)
		}
	})
	return p
}

// command returns a function that makes the command of a server.
func (p *place) command(as string, env ...string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(append(append(os.Environ(), p.env...), env...), role+"="+as)
		return cmd
	}
}

// connect connects a client of a version, whose folder is its test's.
func (p *place) connect(version, folder string) (*shared.Conn, error) {
	return p.Connect(p.t.Context(), "test", version, shared.Origin{Folder: folder, Environ: []string{"A=b"}}, p.command("server", "SHARED_TEST_VERSION="+version))
}

// must connects and fails the test otherwise.
func (p *place) must(version, folder string) *shared.Conn {
	p.t.Helper()
	c, err := p.connect(version, folder)
	if err != nil {
		log, _ := os.ReadFile(p.Log("test"))
		p.t.Fatalf("%v\n%s", err, log)
	}
	p.t.Cleanup(func() { c.Close() })
	return c
}

// say sends a line and returns the answer.
func say(t *testing.T, c *shared.Conn, line string) string {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		t.Fatal(err)
	}
	var answer []byte
	for b := make([]byte, 1); len(answer) == 0 || answer[len(answer)-1] != '\n'; {
		if _, err := c.Read(b); err != nil {
			t.Fatal(err)
		}
		answer = append(answer, b[0])
	}
	return string(answer[:len(answer)-1])
}

func from(pid int, folder string) string {
	return strconv.Itoa(pid) + " " + folder + ` ["A=b"]`
}
