package terminal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/cmd/codex-mcp/internal/terminal"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite what the scripts expect")

// TestScripts runs the scripts in testdata. A script controls a server and a keyboard. Each is
// a txtar archive:
//
//	comment   what it shows
//	console   words: piped, log, json, nokeys, live, width=CELLS, resume=ID, about=TEXT, attempts=N
//	script    the steps, see play
//	events    more events, one a line, for the step "events"
//	stdout    all output
//	stderr    the same for standard error
//	status    the exit status
func TestScripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a := must.Get(txtar.ParseFile(file))(t)
			var out playResult
			synctest.Test(t, func(t *testing.T) { out = play(t, a) })
			for name, got := range map[string]string{"stdout": out.stdout, "stderr": out.stderr, "status": fmt.Sprintf("%d\n", out.status)} {
				if *update {
					servertest.SetSection(a, name, got)
				}
				must.Equal(t, name, servertest.Section(a, name), got)
			}
			if *update {
				must.OK(t, os.WriteFile(file, txtar.Format(a), 0o644))
			}
		})
	}
}

// TestPatchIsShownWhole asks about a patch of very many lines.
func TestPatchIsShownWhole(t *testing.T) {
	const many = 5000
	a := &txtar.Archive{}
	servertest.SetSection(a, "script", `ask {"message":"Allow Codex to apply it?\n- add \u0060/f\u0060\n  and 4,980 more lines\nAll of it is in codex-show.","_meta":{"codex/approval":{"kind":"patch","changes":{"/f":{"add":{"content":"`+
		strings.Repeat(`a line\n`, many)+`"}}}}}}
line n
answer {"action":"decline"}
result {"content":[]}
`)
	synctest.Test(t, func(t *testing.T) {
		text := play(t, a).stdout
		must.Equal(t, "lines", many, strings.Count(text, "  +a line\n"))
		if !strings.Contains(text, "add `/f`") || strings.Contains(text, "more lines") || strings.Contains(text, plain.WholeIs) {
			t.Errorf("the question: %s", text[strings.LastIndex(text, "+a line"):])
		}
	})
}

type playResult struct {
	stdout, stderr string
	status         int
}

// play runs the client within the bubble of synctest. Steps are lines:
//
//	event JSON     send a codex/event notification with this msg
//	of ID JSON     the same, of a conversation
//	events         send the events of the section events
//	ask JSON       send elicitation/create with these params
//	answer JSON    wait for the answer to the oldest open question
//	withdraw WHY   cancel the oldest question that has no answer
//	type TEXT      type at once; TEXT is quoted as in Go
//	key TEXT       type after a pause
//	line TEXT      the same for a line
//	signal NAME    INT or TERM
//	wait TIME      let time pass
//	call METHOD JSON   wait for this request of the client
//	cancelled      wait until the client has cancelled the call
//	result JSON    answer the call
//	gone           end the connection
func play(t *testing.T, a *txtar.Archive) playResult {
	var stdout, stderr lockedBuffer
	keys := newKeyboard(&stdout)
	console := &terminal.Console{Out: &stdout, Err: &stderr, OutTerminal: true, ErrTerminal: true, Input: keys, Width: func() int { return 0 }}
	task := &terminal.Task{Prompt: "do it", Program: "codex-mcp ask", Folder: "/home/me/work"}
	for word := range strings.FieldsSeq(servertest.Section(a, "console")) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "piped":
			console.OutTerminal = false
		case "log":
			console.OutTerminal, console.ErrTerminal = false, false
		case "json":
			task.JSON = true
		case "nokeys":
			console.Input = nil
		case "live":
			console.Rewrites = true
		case "width":
			width := must.Get(strconv.Atoi(value))(t)
			console.Width = func() int { return width }
		case "about":
			task.About = []string{"continuing: " + terminal.Row(unquote(t, `"`+value+`"`))}
		case "attempts":
			task.Attempts = must.Get(strconv.Atoi(value))(t)
		case "resume":
			task.Resume, task.Folder = value, ""
		default:
			t.Fatalf("console: unknown word %q", word)
		}
	}

	here, there := jsonrpc.Pipe()
	server := newFakeServer(t, there)
	signals := make(chan os.Signal, 4)
	status := make(chan int, 1)
	go func() { status <- terminal.Run(t.Context(), here, console, task, signals) }()
	for step := range strings.Lines(servertest.Section(a, "script")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(step), " ")
		synctest.Wait()
		switch word {
		case "", "#":
		case "event":
			server.event("", rest)
		case "of":
			thread, msg, _ := strings.Cut(rest, " ")
			server.event(thread, msg)
		case "events":
			for line := range strings.Lines(servertest.Section(a, "events")) {
				server.event("", strings.TrimSpace(line))
			}
		case "ask":
			server.ask(rest)
		case "answer":
			must.Equal(t, step, parsed(t, "answer "+rest), parsed(t, "answer "+server.answer()))
		case "withdraw":
			server.withdraw(rest)
		case "type":
			keys.types(unquote(t, rest))
		case "key":
			<-time.After(reading)
			keys.types(unquote(t, rest))
		case "line":
			<-time.After(reading)
			keys.types(rest + "\n")
		case "signal":
			signals <- map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM}[rest]
		case "wait":
			d := must.Get(time.ParseDuration(rest))(t)
			<-time.After(d)
		case "call":
			server.called(rest)
		case "cancelled":
			<-server.cancelled
		case "result":
			server.result <- json.RawMessage(rest)
		case "gone":
			server.peer.Close()
		default:
			t.Fatalf("unknown step %q", step)
		}
	}
	out := playResult{status: <-status}
	server.end()
	keys.end()
	out.stdout, out.stderr = stdout.visible(), stderr.visible()
	return out
}

func unquote(t *testing.T, text string) string {
	t.Helper()
	var s string
	if _, err := fmt.Sscanf(text, "%q", &s); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s
}

// fakeServer is the other end of the client's connection.
type fakeServer struct {
	t         *testing.T
	peer      *jsonrpc.Peer
	ended     chan struct{}
	requests  chan string
	result    chan json.RawMessage
	cancelled chan struct{}
	call      atomic.Pointer[jsonrpc.ID] // of the task

	questions []*pendingQuestion
}

type pendingQuestion struct {
	result  chan string
	call    *jsonrpc.Call
	cancel  context.CancelCauseFunc
	settled bool
}

func newFakeServer(t *testing.T, end jsonrpc.Transport) *fakeServer {
	s := &fakeServer{t: t, ended: make(chan struct{}), requests: make(chan string, 10), result: make(chan json.RawMessage, 1), cancelled: make(chan struct{})}
	m := new(jsonrpc.Mux)
	m.Handle("initialize", jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (any, error) {
		s.requests <- r.Method + " " + string(r.Params)
		return json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"codex-mcp","version":"1","engine":{"name":"native","reason":"the command line says so"}}}`), nil
	}))
	m.Handle("notifications/initialized", jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) (any, error) { return nil, nil }))
	m.Handle("tools/call", jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		s.requests <- r.Method + " " + string(r.Params)
		s.call.Store(&r.ID)
		select {
		case result := <-s.result:
			return result, nil
		case <-ctx.Done():
			close(s.cancelled)
			return nil, ctx.Err()
		}
	}))
	s.peer = jsonrpc.NewPeer(end, m, &jsonrpc.Options{Cancellation: jsonrpc.MCPCancel})
	go func() {
		defer close(s.ended)
		s.peer.Run(context.WithoutCancel(t.Context()))
	}()
	return s
}

func (s *fakeServer) end() {
	s.peer.Close()
	<-s.ended
}

func (s *fakeServer) event(thread, msg string) {
	s.t.Helper()
	params := fmt.Sprintf(`{"_meta":{"requestId":%s,"threadId":%q},"id":"1","msg":%s}`, s.call.Load(), thread, msg)
	must.Check(s.t, s.peer.Notify(s.t.Context(), "codex/event", json.RawMessage(params)))
}

func (s *fakeServer) ask(params string) {
	ctx, cancel := context.WithCancelCause(s.t.Context())
	a := &pendingQuestion{result: make(chan string, 1), call: s.peer.Start(ctx, "elicitation/create", json.RawMessage(params)), cancel: cancel}
	s.questions = append(s.questions, a)
	go func() {
		var result json.RawMessage
		if err := a.call.Result(&result); err != nil {
			a.result <- err.Error()
			return
		}
		a.result <- string(result)
	}()
}

// open returns the oldest question without an answer.
func (s *fakeServer) open() *pendingQuestion {
	s.t.Helper()
	for _, a := range s.questions {
		if !a.settled {
			a.settled = true
			return a
		}
	}
	s.t.Fatal("no question is open")
	return nil
}

func (s *fakeServer) answer() string { return <-s.open().result }

func (s *fakeServer) withdraw(why string) {
	a := s.open()
	a.cancel(errors.New(why))
	<-a.result
}

// called waits for a request, "METHOD PARAMS".
func (s *fakeServer) called(want string) {
	s.t.Helper()
	got := <-s.requests
	must.Equal(s.t, "the call", parsed(s.t, want), parsed(s.t, got))
}

// parsed parses "METHOD PARAMS", so that the order of members does not count.
func parsed(t *testing.T, request string) []any {
	t.Helper()
	method, params, _ := strings.Cut(request, " ")
	var v any
	if err := json.Unmarshal([]byte(params), &v); err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	return []any{method, v}
}

// reading is how long the user reads before pressing a key.
const reading = 400 * time.Millisecond

// keyboard is a terminal's input.
type keyboard struct {
	echo io.Writer

	mu    sync.Mutex
	news  *sync.Cond
	typed string
	ended bool
}

func newKeyboard(echo io.Writer) *keyboard {
	k := &keyboard{echo: echo}
	k.news = sync.NewCond(&k.mu)
	return k
}

func (k *keyboard) types(text string) {
	io.WriteString(k.echo, text)
	k.change(func() { k.typed += text })
}

// Read returns a line when it is complete.
func (k *keyboard) Read(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for !k.ended && !strings.Contains(k.typed, "\n") {
		k.news.Wait()
	}
	if k.ended {
		return 0, io.EOF
	}
	n := copy(b, k.typed[:strings.Index(k.typed, "\n")+1])
	k.typed = k.typed[n:]
	return n, nil
}

func (k *keyboard) Flush() error {
	k.change(func() { k.typed = "" })
	return nil
}

func (k *keyboard) end() { k.change(func() { k.ended = true }) }

func (k *keyboard) change(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
	k.news.Broadcast()
}

// lockedBuffer is a buffer that the client and the terminal's echo write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) visible() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
