//go:build realcodex && (linux || darwin)

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

var patient = flag.Bool("patient", false, "wait as long as Codex's daemon does for turns that do not end")

// daemon is Codex's own daemon, with a scripted provider.
type daemon struct {
	codex, home, cwd string

	thinks chan struct{} // has one when the model begins to think
	stall  chan struct{} // closed when it may say what it thought
}

// turn is what the model does. A daemon that has restarted continues the turns that it
// interrupted, with a prompt of its own.
func (d *daemon) turn(r providertest.Request) providertest.Turn {
	switch prompt := r.LastUserText(); {
	case prompt == "think":
		d.thinks <- struct{}{}
		return providertest.Turn{Text: []string{"thought"}, Stall: d.stall}
	case prompt == "write" && len(r.ToolOutputs()) == 0:
		return providertest.Call(providertest.Tool("c1", "exec_command", map[string]any{
			"cmd": "touch made.txt", "sandbox_permissions": "require_escalated", "justification": "to write",
		}))
	case prompt == "write":
		return providertest.Say("written")
	}
	return providertest.Say("again")
}

// newDaemon prepares the daemon, which the end of the test ends together with its updater.
func newDaemon(t *testing.T) *daemon {
	t.Helper()
	d := &daemon{home: t.TempDir(), cwd: t.TempDir(), thinks: make(chan struct{}, 9), stall: make(chan struct{})}
	model := providertest.New(providertest.Turn{Repeat: true, Func: d.turn})
	t.Cleanup(model.Close)
	var err error
	if d.codex, err = appserver.Find(""); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CODEX_BIN", "") // by which users name a program that is not the daemon's
	t.Setenv("PATH", filepath.Dir(d.codex)+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("CODEX_HOME", d.home)
	t.Setenv("HOME", t.TempDir())
	writeConfig(t, d.home, servertest.CodexConfig(model.BaseURL(), "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\""))
	t.Cleanup(func() {
		for _, file := range []string{"daemon.pid", "daemon-updater.pid"} {
			if pid := d.recorded(t, file); pid != 0 {
				d.signal(t, pid, syscall.SIGKILL)
			}
		}
	})
	return d
}

// recorded returns the process that a file of the daemon names, 0 if there is no such file.
func (d *daemon) recorded(t *testing.T, file string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(d.home, "app-server-daemon", file))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	var process struct {
		PID int `json:"pid"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &process)
	}
	if err != nil || process.PID <= 1 {
		t.Fatalf("%s: %v", file, err)
	}
	return process.PID
}

func (d *daemon) signal(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}

// run runs `codex app-server daemon`. It calls asked, unless that is nil, when the command has
// asked the daemon to end.
func (d *daemon) run(t *testing.T, asked func(), words ...string) {
	t.Helper()
	mark := fmt.Sprintf(`"event":"shutdown_requested","details":{"pid":%d}`, d.recorded(t, "daemon.pid"))
	cmd := exec.Command(d.codex, append([]string{"app-server", "daemon"}, words...)...)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if asked != nil && strings.Contains(lines.Text(), mark) {
			asked()
			asked = nil
		}
	}
	if err := cmd.Wait(); err != nil || asked != nil {
		t.Errorf("daemon %q: %v: %s", words, err, &said)
	}
}

// TestRealDaemon has the daemon end in each way while one call waits for the model and another
// for an approval. Both calls end with the reason, no question stays open, and both
// conversations continue on the next daemon, also if that goes on by itself. An orderly end waits
// for turns; a second signal ends that.
func TestRealDaemon(t *testing.T) {
	d := newDaemon(t)
	for _, test := range []struct {
		name   string
		words  []string // of the daemon's command that ends it; nil for kill -9
		finish bool     // the turns end by themselves, which the command waits for
		then   bool     // there is a new daemon
	}{
		{name: "killed"},
		{name: "stopped", words: []string{"stop"}},
		{name: "restarted", words: []string{"restart"}, then: true},
		{name: "restarted after the turns", words: []string{"restart"}, finish: true, then: true},
		// There is no newer version to download. This command installs the same version at
		// another path, and replaces the process as an update does.
		{name: "updated", words: []string{"update", "--from-cli", "--yes"}, then: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d.run(t, nil, "start")
			c := d.connect(t, "unix://")
			thinking, asking := c.begin(t), c.begin(t)
			before := d.recorded(t, "daemon.pid")
			d.stall = make(chan struct{})
			calls := []*daemonCall{c.reply(t, thinking, "think"), c.reply(t, asking, "write")}
			<-d.thinks
			<-c.asked
			switch {
			case test.words == nil:
				d.signal(t, before, syscall.SIGKILL)
			case test.finish:
				d.run(t, func() { close(d.stall); close(c.answer) }, test.words...)
			case *patient:
				d.run(t, func() {}, test.words...)
			default:
				d.run(t, func() {
					for calls[0].runs() { // a signal that comes at once counts as the first
						d.signal(t, before, syscall.SIGTERM)
						time.Sleep(50 * time.Millisecond)
					}
				}, test.words...)
			}
			for i, call := range calls {
				r, err := call.wait()
				want := "the connection to the shared app-server of Codex has ended: it may have been stopped, updated or killed; the conversation can continue"
				if test.finish {
					want = []string{"thought", "written"}[i]
				}
				if err != nil || r.IsError == test.finish || !strings.Contains(r.Content, want) {
					t.Errorf("call %d: %v, %+v", i, err, r)
				}
			}
			if !test.finish {
				<-c.withdrawn
				close(d.stall)
			}
			if after := d.recorded(t, "daemon.pid"); test.words != nil && (after == before || (after != 0) != test.then) {
				t.Errorf("the daemon was process %d and is %d", before, after)
			}
			if !test.then {
				if r, err := c.reply(t, thinking, "on").wait(); err != nil || !r.IsError || !strings.Contains(r.Content, "codex app-server cannot be reached") {
					t.Errorf("without a daemon: %v, %+v", err, r)
				}
				d.run(t, nil, "start")
			}
			for _, thread := range []string{thinking, asking} {
				if r, err := c.reply(t, thread, "on").wait(); err != nil || r.IsError || r.Content != "again" {
					t.Errorf("afterwards: %v, %+v", err, r)
				}
			}
			if !c.engine.Check(t.Context()).Shared {
				t.Error("not on the daemon")
			}
			if len(c.asked) > 0 {
				t.Error("a question was asked again")
			}
			_, err := os.Stat(filepath.Join(d.cwd, "made.txt"))
			if made := err == nil; made != test.finish {
				t.Errorf("made %t", made)
			}
			os.Remove(filepath.Join(d.cwd, "made.txt"))
		})
	}
}

// TestRealDaemonOutOfReach removes the socket of a daemon during a turn, which goes on with its
// connection. A server that comes later cannot reach the daemon. One with its own app-server
// reports who holds the conversation, and continues a copy.
func TestRealDaemonOutOfReach(t *testing.T) {
	d := newDaemon(t)
	d.run(t, nil, "start")
	c := d.connect(t, "unix://")
	thread := c.begin(t)
	call := c.reply(t, thread, "think")
	<-d.thinks
	if err := os.Remove(controlSocket(d.home)); err != nil {
		t.Fatal(err)
	}
	close(d.stall)
	if r, err := call.wait(); err != nil || r.Content != "thought" {
		t.Errorf("the turn: %v, %+v", err, r)
	}
	if r, err := c.reply(t, thread, "on").wait(); err != nil || r.Content != "again" {
		t.Errorf("afterwards: %v, %+v", err, r)
	}
	if report := d.connect(t, "unix://").engine.Check(t.Context()); report.Err == nil || !strings.Contains(report.Problem, "codex app-server cannot be reached") {
		t.Errorf("a later server: %+v", report)
	}
	t.Setenv("CODEX_BIN", d.codex) // which may lie where commands can write
	late := d.connect(t, "")
	if r, err := late.reply(t, thread, "on").wait(); err != nil || !r.IsError || !strings.Contains(r.Content, "another Codex has this conversation open") {
		t.Errorf("a server without the daemon: %v, %+v", err, r)
	}
	r, err := late.Tool(t.Context(), "codex-reply", map[string]any{"prompt": "on", "threadId": thread, "fork": true})
	if err != nil || !strings.HasPrefix(r.Content, "again") || r.Thread == thread {
		t.Errorf("a copy: %v, %+v", err, r)
	}
	// Codex's own command still finds the process.
	d.run(t, nil, "restart")
	if r, err := c.reply(t, thread, "on").wait(); err != nil || r.Content != "again" || !c.engine.Check(t.Context()).Shared {
		t.Errorf("after a restart: %v, %+v", err, r)
	}
}

// TestRealOwnAppServer has no daemon configured. The server starts an app-server of its own next to
// a daemon that runs, and starts none.
func TestRealOwnAppServer(t *testing.T) {
	for name, runs := range map[string]bool{"no daemon": false, "a daemon": true} {
		t.Run(name, func(t *testing.T) {
			d := newDaemon(t)
			if runs {
				d.run(t, nil, "start")
			}
			before := d.recorded(t, "daemon.pid")
			t.Setenv("CODEX_BIN", d.codex) // which may lie where commands can write
			c := d.connect(t, "")
			c.begin(t)
			if report := c.engine.Check(t.Context()); report.Shared || report.Path == "" {
				t.Errorf("%+v", report)
			}
			if after := d.recorded(t, "daemon.pid"); after != before || (after != 0) != runs {
				t.Errorf("the daemon was process %d and is %d", before, after)
			}
		})
	}
}

// daemonClient is a client of a server that uses the daemon, or an app-server of its own.
type daemonClient struct {
	*servertest.Client
	daemon           *daemon
	engine           *appserver.Engine
	asked, withdrawn chan struct{}
	answer           chan struct{} // closed to approve
}

// connect connects to a server with a value of --codex.
func (d *daemon) connect(t *testing.T, codex string) *daemonClient {
	t.Helper()
	c := &daemonClient{daemon: d, asked: make(chan struct{}, 9), withdrawn: make(chan struct{}, 9), answer: make(chan struct{})}
	var err error
	if c.engine, err = (&configuration{home: d.home, settings: &config.Settings{}, log: slog.New(slog.DiscardHandler)}).bridge(codex); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.engine.Close() })
	c.Client = servertest.Connect(t, codexserver.New(c.engine, nil), func(ctx context.Context) (string, error) {
		c.asked <- struct{}{}
		select {
		case <-c.answer:
			return `{"action":"accept","content":{"decision":"approved"}}`, nil
		case <-ctx.Done():
			c.withdrawn <- struct{}{}
			return "", ctx.Err()
		}
	})
	return c
}

// begin begins a conversation.
func (c *daemonClient) begin(t *testing.T) (thread string) {
	t.Helper()
	r, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "begin", "cwd": c.daemon.cwd})
	if err != nil || r.Content != "again" {
		t.Fatalf("%v, %+v", err, r)
	}
	return r.Thread
}

type daemonCall struct {
	done   chan struct{}
	result servertest.Result
	err    error
}

func (c *daemonClient) reply(t *testing.T, thread, prompt string) *daemonCall {
	call := &daemonCall{done: make(chan struct{})}
	go func() {
		defer close(call.done)
		call.result, call.err = c.Tool(t.Context(), "codex-reply", map[string]any{"prompt": prompt, "threadId": thread})
	}()
	return call
}

func (c *daemonCall) wait() (servertest.Result, error) {
	<-c.done
	return c.result, c.err
}

func (c *daemonCall) runs() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}
