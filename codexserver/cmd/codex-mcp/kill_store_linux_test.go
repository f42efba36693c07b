package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestEndToEndLostMachines is TestEndToEndKilledTasks with a worker whose home is lost each time:
// the next worker has an empty one, as on another machine. What it knows comes from the store of
// its node, which is a folder here.
func TestEndToEndLostMachines(t *testing.T) {
	t.Parallel()
	w := newWorkers(t)
	w.killTasks(w.kept, w.record)
}

// A worker begins nothing without its store: when the connection to its node is lost, and when
// another worker has taken over, after which it ends.
func TestEndToEndWithoutStore(t *testing.T) {
	// The worker is ending, so the call may find no server, one that shuts down, or no store.
	begun := func(t *testing.T, s *mortal) {
		var v taskView
		err := s.asks(t.Context(), "tools/call", json.RawMessage(`{"name":"codex","arguments":{"prompt":"task-n1"},`+waitingClient+`}`), &v)
		if err == nil && !v.IsError {
			t.Errorf("%+v", v)
		}
	}
	t.Run("lost", func(t *testing.T) {
		w := newWorkers(t)
		s := w.launch()
		w.conn.Close()
		begun(t, s)
		s.wait() // it ends by itself
		w.idle()
	})
	t.Run("taken over", func(t *testing.T) {
		w := newWorkers(t)
		s := w.launch()
		next, err := workertest.OpenDir(w.kept, w.epoch+1)
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		begun(t, s)
		s.wait() // it ends by itself
		w.idle()
	})
}

// newWorkers returns workers whose model is that of workModel.
func newWorkers(t *testing.T) *workers {
	f := newFolders(t)
	model := providertest.New(workModel(f))
	t.Cleanup(model.Close)
	writeConfig(t, f.home, "approval_policy = \"untrusted\"\n"+fmt.Sprintf(configOf, model.BaseURL()))
	text, err := os.ReadFile(filepath.Join(f.home, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	w := &workers{
		killer: &killer{t: t, f: f, mark: "KILL_TEST=" + rand.Text(), kept: filepath.Join(t.TempDir(), "disk")},
		model:  model,
		files:  map[string][]byte{"config.toml": text, "codex-mcp.toml": []byte("[approvals]\nallow = [{command = [\"dd\"], outside = true}]\n")},
	}
	w.launches = w.launch
	t.Cleanup(func() { w.sweep() })
	return w
}

// workers starts workers as a gateway does, each with another home, and with the store in the
// folder kept.
type workers struct {
	*killer
	model *providertest.Server
	files map[string][]byte
	epoch uint64
	conn  *worker.Conn // the node's end to the last worker
}

// idle fails the test if the model was asked.
func (w *workers) idle() {
	w.t.Helper()
	if n := len(w.model.Requests()); n > 0 {
		w.t.Errorf("%d requests to the model", n)
	}
}

// record joins the decisions of all workers in their order.
func (w *workers) record() string {
	w.t.Helper()
	var lines []string
	paths, err := filepath.Glob(filepath.Join(w.kept, "codex-mcp", "decisions", "*.jsonl"))
	for _, path := range paths {
		lines = append(lines, strings.SplitAfter(strings.TrimSuffix(w.read(path), "\n"), "\n")...)
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(timeOf(a), timeOf(b)) })
	path := filepath.Join(w.t.TempDir(), "record")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\n") + "\n"
	}
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return path
}

// timeOf returns the time of a decision, without fractions that differ in length.
func timeOf(line string) string {
	_, at, _ := strings.Cut(line, `"time":"`)
	at, _, _ = strings.Cut(at, `Z"`)
	return at
}

// launch deletes the home of the last worker, and starts the next one.
func (w *workers) launch() *mortal {
	t := w.t
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	until(t, "files of the last worker's home appear again and again", func() bool { // its commands end after it
		return os.RemoveAll(w.f.home) == nil
	})
	w.epoch++
	w.f.home = filepath.Join(filepath.Dir(w.f.cwd), fmt.Sprint("home-", w.epoch))
	check(os.Mkdir(w.f.home, 0o700))
	disk, err := workertest.OpenDir(w.kept, w.epoch)
	check(err)
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	check(err)
	node, end := os.NewFile(uintptr(pair[0]), "node"), os.NewFile(uintptr(pair[1]), "worker")
	conn, err := net.FileConn(node)
	check(err)
	check(node.Close())
	socket := filepath.Join(w.f.home, "socket")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	check(err)
	l.SetUnlinkOnClose(false)
	listener, err := l.File()
	check(err)
	check(l.Close())
	said, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	check(err)
	cmd := &exec.Cmd{
		Path: built(t), Args: []string{worker.Name}, Dir: w.f.cwd, Stderr: said,
		Env:        []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.f.user, "CODEX_HOME=" + w.f.home, w.mark, detector()},
		ExtraFiles: []*os.File{end, listener},
	}
	check(cmd.Start())
	for _, f := range append(cmd.ExtraFiles, said) {
		_ = f.Close()
	}
	t.Cleanup(func() { // when the test failed
		_ = cmd.Process.Kill()
		if text, err := os.ReadFile(said.Name()); t.Failed() {
			t.Logf("%v, %v, stderr:\n%s", cmd.ProcessState, err, text)
		}
	})
	w.conn = worker.NewConn(conn, worker.Served{Store: disk, Nonsense: func(err error) { t.Errorf("nonsense: %v", err) }})
	s := &mortal{killer: w.killer, cmd: cmd, in: stopping{w.conn}, asks: asksOver(socket), ends: make(chan error, 1)}
	check(w.conn.Start(t.Context(), worker.Settings{
		Version: worker.Version, Principal: "ann", Home: w.f.home, Files: w.files, Engine: "native", Overrides: []string{"calls.grace=0s"}, Folders: []string{w.f.cwd}, Turns: 64, Tasks: 64,
	}))
	ended := w.conn
	go func() {
		<-ended.Ended()
		ended.Close()
		s.ends <- disk.Close()
	}()
	return s
}

// stopping ends a worker when it is closed.
type stopping struct{ conn *worker.Conn }

// Write implements [io.Writer].
func (stopping) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Close implements [io.Closer].
func (s stopping) Close() error {
	s.conn.Stop()
	return nil
}

// asksOver returns a function that sends requests over HTTP to a worker's socket. Its error is
// [jsonrpc.ErrClosed] when the worker has ended.
func asksOver(socket string) func(ctx context.Context, method string, params json.RawMessage, result any) error {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	return func(ctx context.Context, method string, params json.RawMessage, result any) error {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
		if err != nil {
			return err
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method,
			worker.PrincipalHeader: "ann", worker.ScopesHeader: "codex:run codex:approve codex:read",
		} {
			r.Header.Set(name, value)
		}
		var named struct {
			Name   string `json:"name"`
			TaskID string `json:"taskId"`
		}
		if err := json.Unmarshal(params, &named); err != nil {
			return err
		}
		if name := named.Name + named.TaskID; name != "" {
			r.Header.Set("Mcp-Name", name)
		}
		answer, err := client.Do(r)
		if err != nil {
			return jsonrpc.ErrClosed
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return jsonrpc.ErrClosed
		}
		var message struct {
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		for line := range strings.Lines(string(text)) { // of a stream, the last message is the answer
			line = strings.TrimPrefix(line, "data:")
			if one := strings.TrimSpace(line); strings.HasPrefix(one, "{") {
				if err := json.Unmarshal([]byte(one), &message); err != nil {
					return err
				}
			}
		}
		if message.Result == nil {
			if answer.StatusCode == http.StatusOK && len(message.Error) == 0 {
				return jsonrpc.ErrClosed // the stream was cut
			}
			return fmt.Errorf("%s: %s", answer.Status, text)
		}
		return json.Unmarshal(message.Result, result)
	}
}
