//go:build realcodex && unix

package appserver_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/codexmcp/codexmcp/codexserver/appserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/jsonrpc/wsrpc"
)

var runs = flag.Int("runs", 5, "how many times the programs of TestRealShared continue each other's thread")

// shared is a real Codex that listens at its control socket, as its daemon does, with two
// engines on it.
type shared struct {
	*real
	codex   string
	listens *exec.Cmd
	engines [2]*appserver.Engine
}

func newShared(t *testing.T, configuration string, turns ...providertest.Turn) *shared {
	t.Helper()
	s := &shared{real: newReal(t, configuration, turns...)}
	var err error
	if s.codex, err = appserver.Find(""); err != nil {
		t.Fatal(err)
	}
	s.listen(t)
	for i := range s.engines {
		s.engines[i], err = appserver.New(&appserver.Options{CodexHome: s.home, Dial: s.dial, Shared: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.engines[i].Close() })
	}
	return s
}

func (s *shared) socket() string {
	return filepath.Join(s.home, "app-server-control", "app-server-control.sock")
}

// listen starts the app-server.
func (s *shared) listen(t *testing.T) {
	t.Helper()
	s.listens = s.command(context.Background(), "app-server", "--listen", "unix://")
	s.listens.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the program is below a launcher
	if err := s.listens.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.kill(s.listens, syscall.SIGKILL) })
	for {
		if conn, err := net.Dial("unix", s.socket()); err == nil {
			conn.Close()
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("codex does not listen")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *shared) kill(cmd *exec.Cmd, sig syscall.Signal) {
	_ = syscall.Kill(-cmd.Process.Pid, sig)
	_ = cmd.Wait()
}

func (s *shared) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.codex, args...)
	cmd.Dir, cmd.Env = s.cwd, append(os.Environ(), "CODEX_HOME="+s.home)
	return cmd
}

func (s *shared) dial(ctx context.Context) (jsonrpc.Transport, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.socket())
	}}}
	conn, _, err := websocket.Dial(ctx, "ws://localhost/", &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		return nil, err
	}
	return wsrpc.New(conn), nil
}

// queue has Codex's own program continue a thread.
func (s *shared) queue(t *testing.T, id, words string) {
	t.Helper()
	out, err := s.command(t.Context(), "queue", "--thread", id, "--message", words, "--resume").CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("writer")) {
		t.Fatalf("codex queue: %v: %s", err, out)
	}
}

// resume opens a thread of the other engine.
func (s *shared) resume(t *testing.T, e *appserver.Engine, id string, h engine.Host) engine.Conversation {
	t.Helper()
	path, err := e.FindRollout(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	conv, err := e.Resume(t.Context(), path, protocol.Config{}, h)
	if err != nil {
		t.Fatal(err)
	}
	return conv
}

// overhearer is a recorder that also records what other programs do, and the answers of its own
// turns.
type overhearer struct {
	recorder
	mu   sync.Mutex
	ends chan string // of the turns of other programs
	all  []string    // the messages of the model in these turns
	said []string
}

func (*overhearer) Alive() {}

func (h *overhearer) Overhear(_ string, m protocol.EventMsg) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch m := m.(type) {
	case protocol.AgentMessage:
		h.all = append(h.all, m.Message)
	case protocol.UserMessage:
		h.said = append(h.said, m.Message)
	case protocol.TaskComplete:
		h.ends <- *m.LastAgentMessage
	}
}

// TestRealShared has two engines and Codex's own program continue one thread in turns. In each
// turn a command is asked about, by every program that has the thread open; one answers.
func TestRealShared(t *testing.T) {
	var turns []providertest.Turn
	for i := range 3 * *runs {
		turns = append(turns, escalated(fmt.Sprintf("c%d", i)), providertest.Say(fmt.Sprintf("answer %d", i)))
	}
	s := newShared(t, `approval_policy = "on-request"`+"\n"+`sandbox_mode = "read-only"`, turns...)
	var asked [2]int
	var hosts [2]*overhearer
	var convs [2]engine.Conversation
	for i := range hosts {
		hosts[i] = &overhearer{ends: make(chan string, 3**runs)}
		hosts[i].exec = func(context.Context, protocol.ExecApprovalRequest) elicit.Outcome {
			asked[i]++
			return elicit.Outcome{Decision: elicit.Approved}
		}
	}
	convs[0] = mustStart(t, s.engines[0], s.cwd, hosts[0])
	n, queued := 0, ""
	turn := func(i int, words, want string) {
		t.Helper()
		before := len(hosts[i].recorder.all())
		if err := convs[i].Turn(t.Context(), text(words)); err != nil {
			t.Fatalf("%s: engine %d: %v", words, i, err)
		}
		if got := hosts[i].answer(); got != want {
			t.Fatalf("%s: engine %d answered %q, want %q", words, i, got, want)
		}
		questions := 1
		if queued != "" { // the turn waited for Codex's own, whose question it answered
			questions++
			for j := range convs {
				if got := <-hosts[j].ends; got != queued {
					t.Errorf("%s: engine %d overheard %q, want %q", words, j, got, queued)
				}
			}
			queued = ""
		}
		if words == "end" {
			questions--
		} else if got := countTypes(hosts[i].recorder.all()[before:]); got["exec_approval_request"] != questions || got["exec_command_begin"] != 1 || got["exec_command_end"] != 1 || got["agent_message"] != 1 || got["task_started"] != 1 || got["task_complete"] != 1 {
			t.Errorf("%s: engine %d: events %v", words, i, got)
		}
		if other := 1 - i; convs[other] != nil {
			if got := <-hosts[other].ends; got != want {
				t.Errorf("%s: engine %d overheard %q, want %q", words, other, got, want)
			}
		}
	}
	next := func() (words, answer string) {
		n++
		return fmt.Sprintf("go %d", n-1), fmt.Sprintf("answer %d", n-1)
	}
	for range *runs {
		words, want := next()
		turn(0, words, want)
		if convs[1] == nil { // the thread has a turn now
			convs[1] = s.resume(t, s.engines[1], convs[0].ID(), hosts[1])
		}
		words, want = next()
		turn(1, words, want)
		words, queued = next()
		s.queue(t, convs[0].ID(), words)
		for convs[0].(engine.Joint).Elsewhere() == nil { // its question stays open
			time.Sleep(5 * time.Millisecond)
		}
	}
	s.Add(providertest.Say("the end"))
	turn(0, "end", "the end")
	for i, h := range hosts {
		if len(h.ends) > 0 {
			t.Errorf("engine %d overheard %d turns too many", i, len(h.ends))
		}
	}
	if total := asked[0] + asked[1]; total != n {
		t.Errorf("%d questions were asked in %d turns", total, n)
	}
	t.Logf("%d runs, %d turns; engine 0 was asked %d times, engine 1 %d times", *runs, n, asked[0], asked[1])
}

func countTypes(events []protocol.EventMsg) map[string]int {
	n := map[string]int{}
	for _, m := range events {
		n[m.EventType()]++
	}
	return n
}

func mustStart(t *testing.T, e *appserver.Engine, cwd string, h engine.Host) engine.Conversation {
	t.Helper()
	conv, err := e.Start(t.Context(), protocol.Config{Cwd: cwd}, h)
	if err != nil {
		t.Fatal(err)
	}
	return conv
}

// TestRealFork copies a thread that another process holds, up to an earlier prompt.
func TestRealFork(t *testing.T) {
	r := newReal(t, "", providertest.Say("one"), providertest.Say("two"), providertest.Say("copied"), providertest.Say("three"))
	conv := r.start(t, &recorder{}, protocol.Config{})
	for _, words := range []string{"first question", "second question"} {
		if err := conv.Turn(t.Context(), text(words)); err != nil {
			t.Fatal(err)
		}
	}
	other, err := appserver.New(r.options)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	path, err := other.FindRollout(t.Context(), conv.ID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Resume(t.Context(), path, protocol.Config{}, &recorder{}); (err != nil && strings.Contains(err.Error(), "continue a copy")) != can(t, oneWriter) {
		t.Errorf("resumed: %v", err)
	}
	h := &recorder{}
	copied, err := other.Fork(t.Context(), path, protocol.Config{}, h)
	if err != nil {
		t.Fatal(err)
	}
	in := text("another question")
	in.Rollback = 1
	if err := copied.Turn(t.Context(), in); err != nil || h.answer() != "copied" || copied.ID() == conv.ID() {
		t.Errorf("%v, %q, events %v", err, h.answer(), h.types())
	}
	requests := r.Requests()
	body := string(requests[len(requests)-1].Body)
	if !strings.Contains(body, "first question") || strings.Contains(body, "second question") {
		t.Errorf("the request: %s", body)
	}
	if err := conv.Turn(t.Context(), text("on")); err != nil {
		t.Errorf("the original: %v", err)
	}
}
