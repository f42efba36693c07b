package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// person is a user at a simulated terminal.
type person struct {
	t       *testing.T
	f       folders
	model   *providertest.Server
	signals chan os.Signal
	asked   chan struct{} // holds one when the screen waits for a line
	press   chan string
	out     servertest.Journal
	errs    servertest.Journal
}

// sit starts a scripted model, with a configuration that asks before each command.
func sit(t *testing.T, turns ...providertest.Turn) *person {
	t.Helper()
	s := &person{t: t, f: newFolders(t), model: providertest.New(turns...), signals: make(chan os.Signal, 2), asked: make(chan struct{}, 1), press: make(chan string)}
	t.Cleanup(s.model.Close)
	config := strings.ReplaceAll(usualConfig, "$BASE_URL", s.model.BaseURL())
	writeConfig(t, s.f.home, config)
	t.Cleanup(func() { close(s.press) })
	return s
}

// Read and Flush implement [terminal.Input].
func (s *person) Read(b []byte) (int, error) {
	text, open := <-s.press
	if !open {
		return 0, io.EOF
	}
	return copy(b, text), nil
}

func (s *person) Flush() error { return nil }

func (s *person) getenv(name string) string {
	if name == "CODEX_HOME" {
		return s.f.home
	}
	return ""
}

// ask runs codex-mcp ask on a console and returns the exit status.
func (s *person) ask(c *terminal.Console, args ...string) int {
	o, err := parse("codex-mcp", append([]string{"--engine", "native", "ask"}, args...), &s.errs)
	if err != nil {
		s.t.Errorf("%v: %s", err, s.errs.String())
		return -1
	}
	if o.ask.resume == "" {
		o.folder = s.f.cwd
	}
	task, err := o.ask.newTask(nil)
	if err != nil {
		s.t.Error(err)
		return -1
	}
	task.Pause = time.Millisecond
	return o.ask.askOn(s.t.Context(), task, c, s.getenv, s.signals)
}

func (s *person) terminal() *terminal.Console {
	return &terminal.Console{Out: personScreen{s}, Err: &s.errs, OutTerminal: true, ErrTerminal: true, Input: s}
}

func (s *person) piped() *terminal.Console { return &terminal.Console{Out: &s.out, Err: &s.errs} }

// personScreen is the screen that the user reads before typing a line.
type personScreen struct{ *person }

func (w personScreen) Write(b []byte) (int, error) {
	if bytes.HasSuffix(b, []byte("\n  > ")) {
		w.asked <- struct{}{}
	}
	return w.out.Write(b)
}

// types queues lines, each for the next question.
func (s *person) types(lines ...string) (done func()) {
	var w sync.WaitGroup
	w.Go(func() {
		for _, line := range lines {
			<-s.asked
			s.press <- line + "\n"
		}
	})
	return w.Wait
}

func (s *person) shows(want ...string) {
	s.t.Helper()
	for _, w := range want {
		if !strings.Contains(s.out.String(), w) {
			s.t.Errorf("the screen lacks %q:\n%s", w, s.out.String())
		}
	}
}

var gitInit = providertest.Call(providertest.Shell("c1", "git", "init", "-q"))

// repeated is a turn that repeats what the tool printed.
var repeated = providertest.Turn{Func: func(r providertest.Request) providertest.Turn {
	return providertest.Say("The tool said: " + r.LastToolOutput())
}}

// TestEndToEndAskPiped has what ask writes without a terminal: each text of errs once, and no control sequences.
func TestEndToEndAskPiped(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		turns []providertest.Turn
		code  int
		out   string
		errs  []string
	}{
		"needs an approval": {
			turns: []providertest.Turn{{Text: []string{"I will try."}, ToolCalls: gitInit.ToolCalls}, providertest.Say("It was refused.")}, out: "It was refused.\n",
			errs: []string{"I will try.", "· git init -q  needs an approval", "There is no terminal to ask on, so what needs an approval was not done.", "--ask-for-approval", "codex-mcp.toml", "--approvals page"},
		},
		"fails": {turns: []providertest.Turn{{Status: 400, Body: `{"error":{"message":"no such model"}}`}}, code: 1, errs: []string{"no such model"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sit(t, tt.turns...)
			if code := s.ask(s.piped(), "make a repository"); code != tt.code || s.out.String() != tt.out {
				t.Errorf("exit status %d, standard output %q", code, s.out.String())
			}
			for _, want := range tt.errs {
				if strings.Count(s.errs.String(), want) != 1 {
					t.Errorf("standard error lacks %q, or repeats it:\n%s", want, s.errs.String())
				}
			}
			if strings.Contains(s.out.String()+s.errs.String(), "\x1b") {
				t.Error("there are control sequences")
			}
		})
	}
}

// command returns the program with the person's configuration. It ends with the test.
func (s *person) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	bin := built(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir = s.f.cwd
	cmd.Env = append(os.Environ(), "CODEX_HOME="+s.f.home, "CODEX_BIN="+filepath.Join(s.f.home, "none"))
	return cmd
}
