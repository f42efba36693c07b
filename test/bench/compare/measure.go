package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// measurement measures a server once. It returns a value for each of its figures.
type measurement struct {
	figures []string
	measure func(ctx context.Context, argv []string, folder string) ([]float64, error)
}

const (
	calls    = 300  // at once
	alone    = 100  // one after another
	commands = 20   // turns with one
	answers  = 5    // streamed
	pieces   = 5000 // of each
)

// measurements are in the order in which a turn is made cheaper: first what each turn needs.
var measurements = []measurement{
	{[]string{"start to initialize, ms", "CPU until then, ms", "resident when idle, MiB", "program, MiB"}, startUp},
	{[]string{"a turn alone, CPU of the server, ms"},
		turns(providertest.Turn{Text: []string{"done"}}, alone, 1, server.perTurn)},
	{
		[]string{fmt.Sprintf("a turn of %d at once, CPU of the server, ms", calls), "with its children, ms",
			"peak memory, MiB"},
		turns(providertest.Turn{Text: []string{"done"}}, calls, calls, server.perTurn, server.withChildren,
			server.peak),
	},
	{
		[]string{"a turn with one command, with its children, ms"},
		turns(providertest.Call(providertest.ToolCall{Name: "shell", Arguments: `{"command":["bash","-c","echo hi"]}`}),
			commands, 1, server.withChildren),
	},
	{
		[]string{"a streamed event, CPU of the server, µs"},
		turns(providertest.Turn{Text: slices.Repeat([]string{"word "}, pieces)}, answers, 1, server.perEvent),
	},
}

// startUp measures a start, and the memory after it.
func startUp(ctx context.Context, argv []string, _ string) ([]float64, error) {
	s, err := start(ctx, argv, providertest.Turn{})
	if err != nil {
		return nil, err
	}
	defer s.close()
	cpu, err := s.cpu()
	time.Sleep(settle)
	resident, err2 := s.memory("VmRSS")
	program, err3 := os.Stat(s.cmd.Path)
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	return []float64{s.took.Seconds() * 1e3, milliseconds(cpu), resident, float64(program.Size()) / (1 << 20)}, nil
}

// compute starts processes that compute until the returned function ends them.
func compute(ctx context.Context, n int) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running []*exec.Cmd
	for range n {
		cmd := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err = cmd.Start(); err != nil {
			break
		}
		running = append(running, cmd)
	}
	return sync.OnceFunc(func() {
		cancel()
		for _, cmd := range running {
			_ = cmd.Wait() // killed
		}
	}), err
}

// work is what a server has done between two looks at it.
type work struct {
	turns, events int
	server, all   time.Duration // the CPU time of the server, and with its children
	peak          float64       // memory in MiB
}

// turns returns a measurement of n turns, most of them at once after one that warms up. The model answers each request
// as turn says, and the output of a command with a text.
func turns(
	turn providertest.Turn, n, most int, figures ...func(server, work) float64,
) func(context.Context, []string, string) ([]float64, error) {
	return func(ctx context.Context, argv []string, folder string) ([]float64, error) {
		turn.Repeat = true
		quiet := map[string]any{"cwd": folder, "approval-policy": "never", "sandbox": "read-only"} // nothing is asked
		s, err := start(ctx, argv, providertest.Turn{Match: "function_call_output", Repeat: true,
			Text: []string{"done"}}, turn)
		if err != nil {
			return nil, err
		}
		defer s.close()
		if _, err := s.run(1, quiet); err != nil {
			return nil, err
		}
		before, err := s.cpu()
		if err != nil {
			return nil, err
		}
		w := work{turns: n}
		for range n / most {
			events, err := s.run(most, quiet)
			if err != nil {
				return nil, err
			}
			w.events += events
		}
		after, err := s.cpu()
		if err != nil {
			return nil, err
		}
		if w.peak, err = s.memory("VmHWM"); err != nil {
			return nil, err
		}
		w.server = after - before
		if w.all, err = s.end(); err != nil {
			return nil, err
		}
		w.all -= before
		var values []float64
		for _, figure := range figures {
			values = append(values, figure(*s, w))
		}
		return values, nil
	}
}

func (server) perTurn(w work) float64      { return milliseconds(w.server) / float64(w.turns) }
func (server) withChildren(w work) float64 { return milliseconds(w.all) / float64(w.turns) }
func (server) peak(w work) float64         { return w.peak }
func (server) perEvent(w work) float64     { return milliseconds(w.server) * 1e3 / float64(w.events) }

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

// inFolder runs a function with a folder as newFolder makes it, and removes the folder.
func inFolder(files int, run func(folder string) error) error {
	folder, err := newFolder(files)
	if err == nil {
		err = run(folder)
	}
	return errors.Join(err, os.RemoveAll(folder))
}

// newFolder makes a git repository with a number of files, or an empty folder.
func newFolder(files int) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "compare-"); err != nil || files == 0 {
		return dir, err
	}
	for i := range files {
		folder := filepath.Join(dir, fmt.Sprintf("d%d", i/100))
		if err := errors.Join(os.MkdirAll(folder, 0o700),
			os.WriteFile(filepath.Join(folder, fmt.Sprintf("f%d", i)), fmt.Appendln(nil, i), 0o600)); err != nil {
			return dir, err
		}
	}
	for _, argv := range [][]string{{"init", "-q"}, {"add", "-A"},
		{"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"}} {
		cmd := exec.Command("git", argv...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("git %s: %w: %s", argv[0], err, out)
		}
	}
	return dir, nil
}
