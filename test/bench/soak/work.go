package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// work has what the clients share.
type work struct {
	place *place

	mu     sync.Mutex
	random *rand.Rand
	number int
	counts map[string]int
	errs   []error
	behind []string // conversations of disconnected clients
}

// workers is how many concurrent calls each client makes.
const workers = 4

func (w *work) run(ctx context.Context, one, host *process) {
	var all sync.WaitGroup
	c := newClient(one.wire(), one.stdout)
	all.Go(func() { w.serve(ctx, c) })
	for range 2 {
		all.Go(func() { w.comeAndGo(ctx, func() (*client, func() error, error) { return w.visit(host) }) })
	}
	all.Go(func() { w.comeAndGo(ctx, func() (*client, func() error, error) { return w.begin() }) })
	all.Go(func() { w.sweep(ctx) })
	all.Wait()
}

// serve lets a client work until ctx ends.
func (w *work) serve(ctx context.Context, c *client) {
	if w.failed(ctx, c.hello(ctx)) {
		return
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				w.failed(ctx, w.once(ctx, c))
			}
		})
	}
	all.Wait()
}

// comeAndGo lets one client after another work for a while and leave with unanswered calls.
func (w *work) comeAndGo(ctx context.Context, come func() (*client, func() error, error)) {
	for ctx.Err() == nil {
		c, gone, err := come()
		if w.failed(ctx, err) {
			return
		}
		stay, stop := context.WithTimeout(ctx, time.Duration(w.n(8000))*time.Millisecond)
		if id := w.left(); id != "" { // comes back
			// ends with stay
			go func() { _ = c.tool(stay, "codex-reply", map[string]any{"threadId": id, "prompt": "say 0"}) }()
		}
		w.serve(stay, c)
		stop()
		c.mu.Lock()
		w.leaves(c.conversations)
		c.mu.Unlock()
		w.failed(ctx, gone())
		w.did("client left")
	}
}

func (w *work) visit(host *process) (*client, func() error, error) {
	t, read, err := host.dial()
	if err != nil {
		return nil, nil, err
	}
	c := newClient(t, read)
	return c, func() error { c.leave(); return nil }, nil
}

// begin starts a program. It ends at the end of its input or on SIGTERM or SIGHUP, which it
// handles, or on SIGKILL.
func (w *work) begin() (*client, func() error, error) {
	s, err := w.place.startProgram(context.Background())
	if err != nil {
		return nil, nil, err
	}
	c := newClient(s.wire(), s.stdout)
	how := []os.Signal{nil, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL}[w.n(4)]
	c.doomed = how == syscall.SIGKILL
	return c, func() error {
		defer c.leave()
		defer s.kill()
		if how == nil {
			return s.leaves()
		}
		err := errors.Join(s.cmd.Process.Signal(how), s.ends())
		if how == syscall.SIGKILL {
			err = nil
		}
		return err
	}, nil
}

// words are the prompts, see provider.go, and other actions of a client. The first ones are
// twice in the list, so they are more frequent.
var words = []string{
	"say", "run", "ask", "refuse", "torn", "cancel", "reply", "interrupt",
	"say", "run", "ask", "refuse", "torn", "cancel", "reply", "interrupt",
	"long", "cut", "garbage", "fail", "stall", "late", "daemon", "kill", "orphan", "output",
	"sleep", "stopped", "pipeline", "crowd", "slow reader",
}

// once does one thing. It returns an error if a call was not answered.
func (w *work) once(ctx context.Context, c *client) error {
	word := words[w.n(len(words))]
	if word == "orphan" && c.doomed {
		word = "kill"
	}
	if c.full() {
		word = "reply"
	}
	w.did(word)
	switch word {
	case "reply":
		if id, ok := c.any(); ok {
			return c.tool(ctx, "codex-reply", map[string]any{"threadId": id, "prompt": w.prompt("say")})
		}
		return nil
	case "cancel":
		return w.cancelled(ctx, c, []string{"hang", "sleep", "long", "run", "ask"}[w.n(5)], 1500)
	case "sleep", "stopped":
		return w.cancelled(ctx, c, word, 1500)
	case "interrupt":
		return w.interrupted(ctx, c)
	case "pipeline":
		return w.pipelined(ctx, c, 50, func(n int) (string, any) {
			return []string{"ping", "tools/list", "getUserAgent", "getAuthStatus", "none"}[n%5],
				nil
		})
	case "crowd":
		ctx, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		_ = w.pipelined(ctx, c, 40, func(int) (string, any) { // cancelled
			return "tools/call", map[string]any{"name": "codex", "arguments": w.arguments("hang")}
		})
		return nil
	case "slow reader":
		c.read.stop(time.Duration(w.n(3000)) * time.Millisecond)
		word = "long"
	}
	return c.tool(ctx, "codex", w.arguments(word))
}

// cancelled makes a call and cancels it after at most that many milliseconds.
func (w *work) cancelled(ctx context.Context, c *client, word string, most int) error {
	ctx, stop := context.WithTimeout(ctx, time.Duration(w.n(most))*time.Millisecond)
	defer stop()
	err := c.tool(ctx, "codex", w.arguments(word))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// interrupted interrupts a turn with another call. The call of the turn must be answered.
func (w *work) interrupted(ctx context.Context, c *client) error {
	at, ok := c.any()
	if !ok {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		done <- c.tool(ctx, "codex-reply", map[string]any{"threadId": at, "prompt": w.prompt("hang")})
	}()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(time.Duration(w.n(500)) * time.Millisecond):
		}
		if err := c.call(ctx, "interruptConversation", map[string]any{"conversationId": at}); err != nil {
			return errors.Join(err, <-done)
		}
	}
}

// pipelined makes calls without waiting for answers in between.
func (w *work) pipelined(ctx context.Context, c *client, n int, what func(int) (string, any)) error {
	done := make(chan error, n)
	for i := range n {
		method, params := what(i)
		go func() { done <- c.call(ctx, method, params) }()
	}
	var err error
	for range n {
		err = errors.Join(err, <-done)
	}
	return err
}

func (w *work) arguments(word string) map[string]any {
	policy, sandbox := "never", []string{"danger-full-access", "workspace-write", "read-only"}[w.n(3)]
	switch word {
	case "ask":
		policy = "untrusted"
	case "orphan", "stopped":
		sandbox = "danger-full-access"
	}
	return map[string]any{"prompt": w.prompt(word), "approval-policy": policy, "sandbox": sandbox}
}

func (w *work) prompt(word string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number++
	return fmt.Sprintf("%s %d", word, w.number)
}

// sweep removes rollouts that were not used for a while, even those of open conversations.
func (w *work) sweep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Second):
		}
		w.failed(ctx, filepath.WalkDir(filepath.Join(w.place.home, "sessions"),
			func(path string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return nil // it was removed in the meantime
				}
				if info, err := d.Info(); err == nil && time.Since(info.ModTime()) > time.Minute {
					_ = os.Remove(path)
				}
				return nil
			}))
	}
}

func (w *work) n(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

func (w *work) did(word string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[word]++
}

func (w *work) leaves(behind []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behind = append(w.behind, behind...)
	w.behind = w.behind[max(0, len(w.behind)-many):]
}

// left returns a conversation of a disconnected client, or "".
func (w *work) left() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.behind) == 0 {
		return ""
	}
	return w.behind[w.random.IntN(len(w.behind))]
}

// failed records an error, unless the work has ended in the meantime.
func (w *work) failed(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil && !errors.Is(err, errUnanswered) {
		return err != nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.errs) < 20 {
		w.errs = append(w.errs, err)
	}
	return true
}

func (w *work) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.errs...)
}

// report returns how often each thing was done.
func (w *work) report() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	total := 0
	for _, word := range slices.Sorted(maps.Keys(w.counts)) {
		fmt.Fprintf(&b, "%s %d, ", word, w.counts[word])
		total += w.counts[word]
	}
	return fmt.Sprintf("%d things done: %s", total, strings.TrimSuffix(b.String(), ", "))
}
