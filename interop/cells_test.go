package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// cell is one row of the table: what the client does, what the model says, and
// what must have come of it.
type cell struct {
	name   string
	answer string
	list   bool
	// lingers has the model run a command that never ends by itself.
	lingers bool
	turns   func(engine) []providertest.Turn
	calls   func(cwd string) []call
	check   func(*testing.T, *meeting)
}

var cells = []cell{
	{
		name: "connect", turns: noTurns, calls: noCalls,
		check: func(t *testing.T, m *meeting) {
			if m.report.Server != "codex-mcp" {
				t.Errorf("server %q", m.report.Server)
			}
			for _, part := range []string{
				fmt.Sprintf(`"engine":{"name":%q`, m.engine.name),
				`"result":{"capabilities":{"logging":{},"tools":{}},"protocolVersion":"2025-11-25"`,
				`"method":"notifications/initialized"`,
			} {
				if !strings.Contains(m.trace, part) {
					t.Errorf("no %s on the wire", part)
				}
			}
		},
	},
	{
		name: "list tools", list: true, turns: noTurns, calls: noCalls,
		check: func(t *testing.T, m *meeting) {
			if !slices.Equal(m.Tools, []string{"codex", "codex-reply"}) {
				t.Errorf("tools %q", m.Tools)
			}
		},
	},
	{
		name: "accept", answer: "accept", turns: touch, calls: start(call{}),
		check: func(t *testing.T, m *meeting) {
			m.made(t, true)
			m.asked(t, 1)
			m.result(t, 0, false, "done")
		},
	},
	{
		name: "decline", answer: "decline", turns: touch, calls: start(call{}),
		check: func(t *testing.T, m *meeting) {
			m.made(t, false)
			m.asked(t, 1)
			m.result(t, 0, false, "done")
			m.modelWasTold(t, m.engine.declined)
		},
	},
	{
		name: "cancel", answer: "cancel", turns: touch, calls: start(call{}),
		check: func(t *testing.T, m *meeting) {
			m.made(t, false)
			m.asked(t, 1)
			m.result(t, 0, true, "")
			if n := len(m.Requests()); n != 1 {
				t.Errorf("the turn went on: %d requests to the model", n)
			}
		},
	},
	{
		name: "error", answer: "error", turns: touch, calls: start(call{}),
		check: func(t *testing.T, m *meeting) {
			m.made(t, false)
			m.asked(t, 1)
			m.result(t, 0, false, "done", "could not show the approval request")
			m.modelWasTold(t, "could not show the approval request")
		},
	},
	{
		name: "no capability", turns: touch, calls: start(call{}),
		check: func(t *testing.T, m *meeting) {
			m.made(t, false)
			m.asked(t, 0)
			if strings.Contains(m.trace, "elicitation/create") {
				t.Error("a client that cannot be asked was asked")
			}
			m.result(t, 0, false, "done", "cannot show approval requests")
			m.modelWasTold(t, "cannot show approval requests")
		},
	},
	{
		name: "reply",
		turns: func(engine) []providertest.Turn {
			return []providertest.Turn{providertest.Say("the first answer"), providertest.Say("the second answer")}
		},
		calls: start(call{}, call{Tool: "codex-reply", Reply: true, Arguments: map[string]any{"prompt": "the second prompt"}}),
		check: func(t *testing.T, m *meeting) {
			m.result(t, 0, false, "the first answer")
			m.result(t, 1, false, "the second answer")
			if a, b := m.Results[0].ThreadID, m.Results[1].ThreadID; a != b {
				t.Errorf("thread %s went on as %s", a, b)
			}
			for _, part := range []string{"the first prompt", "the first answer", "the second prompt"} {
				m.modelWasTold(t, part)
			}
		},
	},
	{
		name: "cancel a call", answer: "accept", lingers: true,
		calls: func(cwd string) []call {
			return append(start(call{Cancel: true})(cwd), start(call{})(cwd)...)
		},
		check: func(t *testing.T, m *meeting) {
			if len(m.Results) != 2 || m.Results[0].Failed == "" {
				t.Fatalf("results %+v", m.Results)
			}
			if !strings.Contains(m.trace, `"method":"notifications/cancelled"`) {
				t.Error("the client did not say that it cancels")
			}
			m.result(t, 1, false, "still here")
		},
	},
	{
		name: "progress seen", answer: "accept", turns: touch, calls: start(call{Progress: true}),
		check: func(t *testing.T, m *meeting) {
			m.result(t, 0, false, "done")
			var messages []string
			for i, p := range m.Progress {
				if i > 0 && p.Progress <= m.Progress[i-1].Progress {
					t.Errorf("progress went from %v to %v", m.Progress[i-1].Progress, p.Progress)
				}
				messages = append(messages, p.Message)
			}
			// What comes after the client's own answer may arrive together with
			// the result, and then the TypeScript SDK drops it.
			if !slices.Contains(messages, "waiting for approval") || !running.MatchString(m.trace) {
				t.Errorf("progress %q", messages)
			}
		},
	},
}

// running is the progress of touch, with or without a shell around it.
var running = regexp.MustCompile(`"message":"running [^"]*touch made"`)

func noTurns(engine) []providertest.Turn { return nil }

func noCalls(string) []call { return nil }

// touch has the model run a command whose effect can be seen, and finish.
func touch(e engine) []providertest.Turn {
	return []providertest.Turn{providertest.Call(e.run("call_1", "touch", "made")), providertest.Say("done")}
}

// start calls codex, asking before every command, and goes on with then.
func start(first call, then ...call) func(string) []call {
	return func(cwd string) []call {
		begin := first // which cells share that run side by side
		begin.Tool = "codex"
		begin.Arguments = map[string]any{"prompt": "the first prompt", "cwd": cwd, "approval-policy": "untrusted", "sandbox": "danger-full-access"}
		return append([]call{begin}, then...)
	}
}

// linger has the model run a command that says when it has begun and then
// waits for ever, and lets it answer the next call only when that command has
// ended. What it returns is closed when the command runs, and waits for its end.
func linger(ctx context.Context, t *testing.T, m *meeting) (running <-chan struct{}, ended func() error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	file := "exec 3<>/dev/tcp/127.0.0.1/" + port + "\necho begun >&3\nsleep 600\n"
	if err := os.WriteFile(filepath.Join(m.cwd, "linger.sh"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	begun, over := make(chan struct{}), make(chan struct{})
	m.Add(
		providertest.Call(m.engine.run("call_1", "bash", "linger.sh")),
		providertest.Turn{Wait: over, Text: []string{"still here"}})
	done := make(chan error, 1)
	go func() {
		defer stop()
		defer listener.Close()
		conn, err := listener.Accept()
		if err != nil {
			done <- fmt.Errorf("the command did not begin: %w", err)
			return
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		r := bufio.NewReader(conn)
		if line, err := r.ReadString('\n'); line != "begun\n" {
			done <- fmt.Errorf("the command said %q: %w", line, err)
			return
		}
		close(begun)
		if _, err := io.Copy(io.Discard, r); err != nil && ctx.Err() != nil {
			done <- fmt.Errorf("the command did not end: %w", err)
			return
		}
		close(over)
		done <- nil
	}()
	return begun, func() error { return <-done }
}

// made checks whether the command ran.
func (m *meeting) made(t *testing.T, want bool) {
	t.Helper()
	_, err := os.Stat(filepath.Join(m.cwd, "made"))
	if err != nil && !errors.Is(err, os.ErrNotExist) || (err == nil) != want {
		t.Errorf("the command ran: %v, want %v", err == nil, want)
	}
}

// asked checks how often the client was asked, and for what.
func (m *meeting) asked(t *testing.T, times int) {
	t.Helper()
	if len(m.Asked) != times {
		t.Errorf("asked %q, want %d questions", m.Asked, times)
	}
	for _, message := range m.Asked {
		if !strings.Contains(message, "touch made") {
			t.Errorf("asked %q", message)
		}
	}
}

// result checks the answer of a call; parts are of one block each.
func (m *meeting) result(t *testing.T, i int, isError bool, parts ...string) {
	t.Helper()
	if len(m.Results) <= i {
		t.Fatalf("%d results", len(m.Results))
	}
	r := m.Results[i]
	if r.Failed != "" || r.IsError != isError || r.ThreadID == "" || len(r.Text) != len(parts) {
		t.Fatalf("result %d is %+v", i, r)
	}
	for j, part := range parts {
		if !strings.Contains(r.Text[j], part) {
			t.Errorf("result %d, block %d is %q and lacks %q", i, j, r.Text[j], part)
		}
	}
}

// modelWasTold looks into the last request to the model.
func (m *meeting) modelWasTold(t *testing.T, what string) {
	t.Helper()
	requests := m.Requests()
	if len(requests) != 2 || !strings.Contains(string(requests[1].Body), what) {
		t.Errorf("%d requests to the model, the last without %q", len(requests), what)
	}
}
