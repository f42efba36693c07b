package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// question is how long a question is open, so short that it is reached often.
const question = 2 * time.Second

// patience limits every wait; only a failing server reaches it.
const patience = 2 * time.Minute

// place has the folders of a run and starts servers in them.
type place struct {
	program    string
	home, work string
	mark       string // a variable that all their processes inherit
}

func newPlace(dir, program, url string) (*place, error) {
	program, err := filepath.Abs(program)
	p := &place{program: program, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), mark: "SOAK=" +
		rand.Text()}
	config := fmt.Sprintf(`model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = %q
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
stream_idle_timeout_ms = 2000
`, url)
	settings := fmt.Sprintf("[approvals]\ntimeout = %q\n", question)
	return p, errors.Join(err, os.Mkdir(p.home, 0o700), os.Mkdir(p.work, 0o700),
		os.WriteFile(filepath.Join(p.home, "config.toml"), []byte(config), 0o600),
		os.WriteFile(filepath.Join(p.home, "codex-mcp.toml"), []byte(settings), 0o600))
}

// process is a server's process.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *slow
	exited chan struct{}
	err    error

	goroutines int           // as last reported; -1 where it does not report them
	lines      *bufio.Reader // of a host
	address    string
}

func (p *place) start(ctx context.Context, program string, args ...string) (*process, error) {
	s := &process{cmd: exec.CommandContext(ctx, program, args...), exited: make(chan struct{}), goroutines: -1}
	s.cmd.Dir = p.work
	s.cmd.Env = append(os.Environ(), "CODEX_HOME="+p.home, "HOME="+p.home, p.mark)
	s.cmd.Stderr = os.Stderr
	s.cmd.WaitDelay = time.Second
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe() // not StdoutPipe, which Wait closes before the last is read
	if err != nil {
		return nil, err
	}
	s.cmd.Stdout = w
	s.stdin, s.stdout = in, &slow{r: r}
	err = s.cmd.Start()
	w.Close()
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	go func() {
		defer close(s.exited)
		s.err = s.cmd.Wait()
	}()
	return s, nil
}

// startProgram starts the program as its client does.
func (p *place) startProgram(ctx context.Context) (*process, error) {
	return p.start(ctx, p.program, "--engine", "native", "--log", "error")
}

// wire is the connection to a program.
func (s *process) wire() jsonrpc.Transport {
	return jsonrpc.Lines(s.stdout, s.stdin, closers{s.stdin, s.stdout.r})
}

// startHost starts the server of the packages; its clients dial.
func (p *place) startHost(ctx context.Context) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s, err := p.start(ctx, self, "-host")
	if err != nil {
		return nil, err
	}
	s.lines = bufio.NewReader(s.stdout.r)
	if s.address, err = s.lines.ReadString('\n'); err != nil {
		return nil, err
	}
	s.address = strings.TrimSpace(s.address)
	return s, s.count()
}

// dial connects a client to a host.
func (s *process) dial() (jsonrpc.Transport, *slow, error) {
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		return nil, nil, err
	}
	r := &slow{r: c}
	return jsonrpc.Lines(r, c, c), r, nil
}

// count asks a host for its goroutines.
func (s *process) count() error {
	if s.lines == nil {
		return nil
	}
	if _, err := io.WriteString(s.stdin, "\n"); err != nil {
		return err
	}
	line, err := s.lines.ReadString('\n')
	if err != nil {
		return err
	}
	s.goroutines, err = strconv.Atoi(strings.TrimSpace(line))
	return err
}

// settles waits until a host without clients has no more goroutines than before its first
// client, except for idle connections and keepers.
func (s *process) settles(before int, out io.Writer) error {
	const rest = 25
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(100 * time.Millisecond) {
		if err := s.count(); err != nil {
			return err
		}
		if s.goroutines <= before+rest {
			_, err := fmt.Fprintf(out, "%d goroutines before the first client, %d after the last\n", before,
				s.goroutines)
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d goroutines before the first client, %d after the last", before, s.goroutines)
		}
	}
}

// leaves closes a server's input and waits for its end.
func (s *process) leaves() error {
	s.stdin.Close()
	return s.ends()
}

func (s *process) ends() error {
	select {
	case <-s.exited:
		return s.err
	case <-time.After(patience):
		return errors.New("a server does not end after its input ended")
	}
}

func (s *process) kill() {
	s.cmd.Process.Kill()
	<-s.exited
	s.stdout.r.Close()
}

// nothingLeft waits until no process of the run is left.
func (p *place) nothingLeft() error {
	for deadline := time.Now().Add(30 * time.Second); ; <-time.After(100 * time.Millisecond) {
		var left []string
		dirs, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			env, _ := os.ReadFile(dir + "/environ") // the process may have ended or belong to another user
			if strings.Contains(string(env), p.mark) {
				words, _ := os.ReadFile(dir + "/cmdline")
				left = append(left, fmt.Sprintf("%s %q", filepath.Base(dir), words))
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes are left: %s", strings.Join(left, ", "))
		}
	}
}

// slow is a reader that can be stopped for a while.
type slow struct {
	r     io.ReadCloser
	mu    sync.Mutex
	until time.Time
}

func (s *slow) stop(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Now().Add(d)
}

// Read implements [io.Reader].
func (s *slow) Read(b []byte) (int, error) {
	s.mu.Lock()
	wait := time.Until(s.until)
	s.mu.Unlock()
	<-time.After(wait)
	return s.r.Read(b)
}

type closers []io.Closer

func (c closers) Close() (err error) {
	for _, one := range c {
		err = errors.Join(err, one.Close())
	}
	return err
}
