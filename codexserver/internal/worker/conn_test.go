package worker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// patience bounds each wait. Only a failing test reaches it.
const patience = 20 * time.Second

// connected returns both ends of a connection. The worker has started.
func connected(t *testing.T, s worker.Served) (*worker.Conn, *worker.Link) {
	t.Helper()
	near, far := net.Pipe()
	if s.Nonsense == nil {
		s.Nonsense = func(err error) { t.Errorf("nonsense: %v", err) }
	}
	c := worker.NewConn(near, s)
	t.Cleanup(c.Close)
	started := make(chan error, 1)
	go func() {
		started <- c.Start(t.Context(), worker.Settings{Version: worker.Version, Principal: "ann", Record: s.Record != nil})
	}()
	l := must.Get(worker.ConnectOver(far, nil))(t)
	t.Cleanup(func() { _ = l.Close() })
	l.Ready(func() worker.Load { return worker.Load{Activity: worker.Waiting, Turns: 3} })
	must.OK(t, <-started)
	return c, l
}

// TestStore checks that a store behind the connection keeps the promises of a store.
func TestStore(t *testing.T) {
	workertest.Run(t, func(t *testing.T) workertest.Open {
		dir := t.TempDir()
		return func(epoch uint64) (worker.Store, error) {
			d, err := workertest.OpenDir(dir, epoch)
			if err != nil {
				return nil, err
			}
			_, l := connected(t, worker.Served{Store: d})
			return l.Store, nil
		}
	})
}

// TestMessages sends each message of the gateway.
func TestMessages(t *testing.T) {
	c, l := connected(t, worker.Served{})
	if err := l.Check(); err != nil || l.Settings.Principal != "ann" || l.Record != nil {
		t.Errorf("%+v, %v", l.Settings, err)
	}
	if got, err := c.Load(t.Context()); err != nil || got != (worker.Load{Activity: worker.Waiting, Turns: 3}) {
		t.Errorf("load %+v, %v", got, err)
	}
	for range 2 {
		c.Stop()
	}
	select {
	case <-l.Stop:
	case <-time.After(patience):
		t.Fatal("it does not stop")
	}
	if l.Fail(errors.New("late")) {
		t.Error("a worker that has started says why it does not start")
	}
	c.Close()
	select {
	case <-l.Store.Ended():
	case <-time.After(patience):
		t.Fatal("the worker does not learn that the gateway has ended")
	}
	if err := l.Store.Put(t.Context(), "a", nil); !errors.Is(err, worker.ErrUnavailable) {
		t.Error(err)
	}
}

// TestStartFails says why a worker does not start, in one line.
func TestStartFails(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*worker.Link)
		want string
	}{
		{"an error", func(l *worker.Link) { go l.Fail(errors.New("no\nengine")) }, "no engine"},
		{"an end", func(l *worker.Link) { _ = l.Close() }, "the process ended before it was ready"},
	} {
		near, far := net.Pipe()
		c := worker.NewConn(near, worker.Served{Nonsense: func(error) {}})
		failed := make(chan error, 1)
		go func() { failed <- c.Start(t.Context(), worker.Settings{}) }()
		l := must.Get(worker.ConnectOver(far, nil))(t)
		if err := l.Check(); err == nil {
			t.Error("a gateway of another version is accepted")
		}
		tt.end(l)
		if err := <-failed; err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		c.Close()
		_ = l.Close()
	}
}

// TestRecord appends lines to the log, and learns what could not be written.
func TestRecord(t *testing.T) {
	var lines []string
	_, l := connected(t, worker.Served{Record: func(line []byte) error {
		if string(line) == "full" {
			return errors.New("no space")
		}
		lines = append(lines, string(line))
		return nil
	}})
	long := strings.Repeat("x", 1<<20)
	for _, line := range []string{"a\n", long + "\n"} {
		if n, err := io.WriteString(l.Record, line); err != nil || n != len(line) {
			t.Errorf("%d, %v", n, err)
		}
	}
	for line, want := range map[string]string{"full\n": "no space", "\n": "whole line", "half": "whole line"} {
		if _, err := io.WriteString(l.Record, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", line, err)
		}
	}
	if !slices.Equal(lines, []string{"a", long}) {
		t.Errorf("%d lines, %.40q", len(lines), lines)
	}
}

// crowded is a store that counts the calls that wait for it at a time.
type crowded struct {
	worker.Store

	mu        sync.Mutex
	now, most int
}

func (c *crowded) Put(ctx context.Context, _ string, _ []byte) error {
	c.wait(1)
	defer c.wait(-1)
	<-ctx.Done()
	return errors.Join(worker.ErrUnavailable, ctx.Err())
}

func (c *crowded) wait(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += n
	c.most = max(c.most, c.now)
}

// TestFlood checks that a worker that sends calls without end, and reads no answer, has so many at a time that the gateway
// keeps little of them. The gateway ends it without waiting.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &crowded{}
		near, far := net.Pipe()
		c := worker.NewConn(near, worker.Served{Store: s, Nonsense: func(error) {}})
		long := strings.Repeat("x", 10_000) // so that few answers fill what may be unread
		go func() {
			for id := 0; ; id++ {
				if _, err := fmt.Fprintf(far, `{"jsonrpc":"2.0","id":"%d%s","method":"put","params":{"name":"a"}}`+"\n", id, long); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		c.Close()
		synctest.Wait()
		must.Equal(t, "calls at a time", 16, s.most)
	})
}

// TestHostile sends what no worker sends. Nothing of it reaches the store, and what is no message is known as nonsense.
func TestHostile(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		nonsense   bool
	}{
		{"no JSON", "hello", true},
		{"a deep message", `{"jsonrpc":"2.0","id":1,"method":"put","params":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, true},
		{"an unknown method", `{"jsonrpc":"2.0","id":1,"method":"start","params":{}}`, false},
		{"a log that there is not", `{"jsonrpc":"2.0","id":1,"method":"record","params":{"data":"eA=="}}`, false},
		{"other params", `{"jsonrpc":"2.0","id":1,"method":"put","params":{"name":1}}`, false},
		{"no params", `{"jsonrpc":"2.0","id":1,"method":"put"}`, false},
		{"an answer that nobody waits for", `{"jsonrpc":"2.0","id":7,"result":{}}`, false},
		{"too much for an append", `{"jsonrpc":"2.0","id":1,"method":"append","params":{"name":"a","data":"` + strings.Repeat("AAAA", 100<<10) + `"}}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			near, far := net.Pipe()
			nonsense := make(chan error, 8)
			c := worker.NewConn(near, worker.Served{Nonsense: func(err error) { nonsense <- err }}) // without a store: a call of it would panic
			defer c.Close()
			go func() {
				_, _ = io.WriteString(far, tt.line+"\n"+`{"jsonrpc":"2.0","id":2,"method":"delete","params":{"name":"../bob"}}`+"\n")
			}()
			in := bufio.NewScanner(far)
			for in.Scan() && !strings.Contains(in.Text(), `"id":2`) {
				if strings.Contains(in.Text(), "result") {
					t.Errorf("it is carried out: %s", in.Text())
				}
			}
			if !strings.Contains(in.Text(), "malformed name") {
				t.Errorf("%s, %v", in.Text(), in.Err())
			}
			must.Equal(t, "it is nonsense", tt.nonsense, len(nonsense) > 0)
		})
	}
}

// TestNames checks that names that could lead to the state of another user, or out of a stream, reach no store.
func TestNames(t *testing.T) {
	_, l := connected(t, worker.Served{}) // without a store: a call of it would panic
	long := strings.Repeat("x", 255)
	for _, name := range []string{"a", "A-_.9/z", long, long + "/" + long[1:] + "/a"} { // the last one has 512 bytes
		must.Check(t, worker.CheckName(name))
	}
	for _, name := range []string{
		long + "x", long + "/" + long + "/a", "a/",
		"..", "../bob/a", "a/../../b", "/a", "a//b", ".hidden", "a b", "a\\b", ">", "*", "a.>/b\x00", "a\r\nPUB x 1\r\n", "ä",
	} {
		_, read := l.Store.Read(t.Context(), name, 0, 1)
		_, list := l.Store.List(t.Context(), name)
		for _, err := range []error{read, list, l.Store.Delete(t.Context(), name), l.Store.Put(t.Context(), name, nil), l.Store.Append(t.Context(), name, 0, nil)} {
			if !errors.Is(err, worker.ErrName) {
				t.Errorf("%.20q: %v", name, err)
			}
		}
	}
}
