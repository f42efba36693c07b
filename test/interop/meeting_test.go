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
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/test/interop/internal/wire"
)

// trace returns what went over the wire so far.
func (m *meeting) trace(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(m.path)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func (m *meeting) wire(t *testing.T) []wire.Message {
	t.Helper()
	messages, err := wire.Read(m.trace(t))
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

// touching has the model make a file by a command, and then finish, for requests that
// contain match.
func (m *meeting) touching(match, name string) {
	command, done := providertest.Call(m.engine.run("call_1", "touch", name)), providertest.Say("done")
	command.Match, done.Match = match, match
	m.model.Add(command, done)
}

// wait calls codex-wait until the threads' turns have ended, and returns their
// results.
func (m *meeting) wait(ctx context.Context, t *testing.T, threads ...string) (contents []string) {
	t.Helper()
	for {
		rows := m.do(ctx, t, "codex-wait", map[string]any{"threadIds": threads, "seconds": 20}).Structured.Threads
		contents = nil
		for _, row := range rows {
			switch {
			case !slices.Contains(threads, row.ThreadID):
				t.Fatalf("codex-wait speaks of the thread %s: %+v", row.ThreadID, rows)
			case row.Status == "completed":
				contents = append(contents, row.Content)
			case row.Status != "running" && row.Status != "waiting":
				t.Fatalf("codex-wait: %+v", rows)
			}
		}
		if len(contents) == len(threads) {
			return contents
		}
	}
}

// linger has the model run a command that reports its start and then sleeps, and answer
// the next call only when that command has ended. running is closed when the command
// runs; ended waits for its end.
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
	m.model.Add(
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

// made checks whether the command ran that makes the file.
func (m *meeting) made(t *testing.T, want bool, name string) {
	t.Helper()
	_, err := os.Stat(filepath.Join(m.cwd, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) || (err == nil) != want {
		t.Errorf("%s was made: %v, want %v", name, err == nil, want)
	}
}

// wasAsked checks how often the client was asked, and for what.
func (m *meeting) wasAsked(t *testing.T, times int) {
	t.Helper()
	asked, _ := m.seen()
	if len(asked) != times {
		t.Errorf("asked %q, want %d questions", asked, times)
	}
	for _, message := range asked {
		if !strings.Contains(message, "touch ") && !strings.Contains(message, "ls -a") {
			t.Errorf("asked %q", message)
		}
	}
}

// is checks the result of a turn's call, where each block contains one of the parts. A last
// block may name the thread, as all clients but Codex get it.
func (r result) is(t *testing.T, isError bool, parts ...string) {
	t.Helper()
	if last := len(r.Content) - 1; last > 0 && !isError && strings.HasPrefix(r.Content[last].Text, "\n[thread "+r.Structured.ThreadID) {
		r.Content = r.Content[:last]
	}
	if r.IsError != isError || r.Structured.ThreadID == "" || len(r.Content) != len(parts) {
		t.Fatalf("result %+v", r)
	}
	for i, part := range parts {
		if !strings.Contains(r.Content[i].Text, part) {
			t.Errorf("result, block %d is %q and lacks %q", i, r.Content[i].Text, part)
		}
	}
}

// modelWasTold checks that the second and last request to the model contains what.
func (m *meeting) modelWasTold(t *testing.T, what string) {
	t.Helper()
	requests := m.model.Requests()
	if len(requests) != 2 || !strings.Contains(string(requests[1].Body), what) {
		t.Errorf("%d requests to the model, the last without %q", len(requests), what)
	}
}
