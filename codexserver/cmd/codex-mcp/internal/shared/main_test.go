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
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// role makes this program a process of a test.
const role = "SHARED_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(memdir.Run(m))
	case "server", "page":
		serve()
	case "forger":
		fmt.Fprintln(os.Stderr, forge(os.Args[1:]))
		os.Exit(1)
	case "client": // connects and prints what the server says
		if len(os.Args) > 1 { // it connects as an orphan
			adopted()
		}
		f, err := shared.Open(os.Getenv("SHARED_TEST_HOME"))
		if err == nil {
			var c *shared.Conn
			if c, err = f.Connect(context.Background(), "test", engine.Origin{}, func() *exec.Cmd { return exec.Command("false") }); err == nil {
				fmt.Println("connected to", c.PID())
			}
			linked, failed := f.Ask(context.Background(), "test", shared.Link)
			fmt.Println(linked, failed)
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

// serve is a server that answers each line with its process id and the client's folder. To the line "run PROGRAM ARGS" it answers
// with what that command prints. After the line "work" it works until the file "done" in the client's folder exists.
func serve() {
	f, err := shared.Open(os.Getenv("SHARED_TEST_HOME"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	idle, _ := time.ParseDuration(os.Getenv("SHARED_TEST_IDLE"))
	s := &shared.Server{
		Folder: f, Name: "test", Idle: idle,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Status: func() shared.Status { return shared.Status{About: "a test"} },
		Link:   func() string { return "LINK" },
		Serve: func(ctx context.Context, conn io.ReadWriteCloser, from engine.Origin, left func()) {
			defer conn.Close()
			end := context.AfterFunc(ctx, func() { conn.Close() })
			defer end()
			lines := bufio.NewScanner(conn)
			for lines.Scan() {
				switch {
				case lines.Text() == "work":
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
	if os.Getenv(role) == "page" { // it serves nobody
		s.Name, s.Serve = "", nil
	}
	if err = s.Listen(); err == nil {
		shared.Started()
		err = s.Run(context.Background())
	}
	if err != nil {
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
	f := must.Get(shared.Open(home))(t)
	p := &place{Folder: f, t: t, path: filepath.Join(home, "codex-mcp", "run"), env: []string{"SHARED_TEST_HOME=" + home, "SHARED_TEST_IDLE=1h"}}
	t.Cleanup(func() { f.Close() })
	t.Cleanup(func() {
		if _, err := p.Ask(context.Background(), "test", shared.Stop); err != nil && err != shared.ErrAbsent {
			t.Log("stop:", err)
		}
	})
	return p
}

// command returns a function that makes the command of a server.
func (p *place) command(as string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(append(os.Environ(), p.env...), role+"="+as)
		return cmd
	}
}

// connect connects a client with a folder.
func (p *place) connect(folder string) (*shared.Conn, error) {
	return p.Connect(p.t.Context(), "test", engine.Origin{Folder: folder, Environ: []string{"A=b"}}, p.command("server"))
}

// must connects and fails the test otherwise.
func (p *place) must(folder string) *shared.Conn {
	p.t.Helper()
	c, err := p.connect(folder)
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
	must.Get(io.WriteString(c, line+"\n"))(t)
	var answer []byte
	for b := make([]byte, 1); len(answer) == 0 || answer[len(answer)-1] != '\n'; {
		must.Get(c.Read(b))(t)
		answer = append(answer, b[0])
	}
	return string(answer[:len(answer)-1])
}

func from(pid int, folder string) string { return strconv.Itoa(pid) + " " + folder + ` ["A=b"]` }
