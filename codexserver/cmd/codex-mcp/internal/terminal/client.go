package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	codexclient "github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
	jsonv2 "github.com/go-json-experiment/json"
)

// A Task is a task for the server.
type Task struct {
	// Prompt is the text of the task.
	Prompt string
	// Resume continues the conversation with this id, or the newest one when it is
	// "last". Empty begins a new one.
	Resume string
	// Arguments are further arguments of the tool codex, for a new conversation.
	Arguments map[string]any
	// Folder is the folder of a new conversation, as far as the client knows.
	Folder string
	// JSON writes every event and the result to standard output, each as one line of
	// JSON, and nothing else.
	JSON bool
	// Program is the command that continues the conversation, such as "codex-mcp ask". Empty
	// means that none can.
	Program string
	// Told means that the answer itself says what was not run and why. Then no remark says it again.
	Told bool
	// Version is the client's version.
	Version string
	// Pause is how long nothing may be typed before a question accepts keys. 0 means
	// 300 ms.
	Pause time.Duration
}

// MaxTask is the longest message with a task that the server accepts, in bytes.
const MaxTask = 64 << 20

// ErrTaskTooLong means that a task does not fit into a message.
var ErrTaskTooLong = errors.New("the task is too long: with its quoting it may have 64 MiB; put it into a file, and name that in the task")

// envelope bounds the message without the arguments of the call, in bytes.
const envelope = 4 << 10

// maxMessage is the longest message from the server, in bytes. It is large since the server
// is a part of this program and repeats the answer in its result.
const maxMessage = 1 << 30

// Last means the newest conversation in [Task].Resume.
const Last = "last"

// The exit statuses of Run.
const (
	StatusAnswered    = 0
	StatusFailed      = 1
	StatusInterrupted = 130 // as in shells: 128 and the number of SIGINT
)

const (
	usualPause = 300 * time.Millisecond
	// abortTime bounds the wait for the end of an interrupted turn.
	abortTime = 5 * time.Second
)

// client is one run of a task.
type client struct {
	console *Console
	task    *Task
	signals <-chan os.Signal
	out     *output
	broken  <-chan struct{} // closed when standard output fails; nil after it was noticed
	inbox   *inbox
	keys    *reader
	s       *screen
	v       *view

	engine   string
	thread   string
	began    time.Time // when the running turn began; zero without one
	stopping stopping
}

// stopping is how the turn is stopped, and how far that is.
type stopping struct {
	interrupt   context.CancelFunc // of the call
	interrupted bool
	stopped     bool             // a key stopped the turn, and the screen shows it
	lost        bool             // interrupted because standard output failed
	ended       bool             // the call has ended
	late        <-chan time.Time // fires when the interrupted turn takes too long to end
}

// hello describes the engine and the conversation to continue, event is an event of the
// call, and end is the end of the call.
type (
	hello struct{ engine, preview string }
	event struct {
		msg protocol.EventMsg
		raw json.RawMessage
	}
	end struct {
		result codexclient.Result
		err    error
	}
)

// Run runs a task on the server at the other end of t and returns the exit status. The
// first os.Interrupt of signals interrupts the turn. A second one, or any other signal,
// ends Run at once. When standard output cannot be written, or its reader is gone, Run
// interrupts the turn and returns StatusFailed.
func Run(ctx context.Context, t jsonrpc.Transport, c *Console, task *Task, signals <-chan os.Signal) int {
	out, stderr := newOutput(c), c.Err
	checked := *c
	if checked.Out = out; c.Joined {
		checked.Err = out
	}
	code := run(ctx, t, &checked, out, task, signals)
	if err := out.err; err != nil && code != StatusInterrupted {
		fmt.Fprintf(stderr, "%s: standard output: %v\n", cmp.Or(task.Program, "ask"), err)
		return StatusFailed
	}
	return code
}

func run(ctx context.Context, t jsonrpc.Transport, c *Console, out *output, task *Task, signals <-chan os.Signal) int {
	cl := &client{console: c, task: task, signals: signals, out: out, broken: out.failed, inbox: newInbox(), s: c.screen(task.JSON)}
	asks := c.Asks(task.JSON)
	if asks {
		cl.keys = newReader(c.Keys)
	}
	cl.v = &view{s: cl.s, home: c.Home, brief: cl.s.seen, asks: asks, hold: !c.OutTerminal && !task.JSON, cwd: task.Folder}
	running, stop := context.WithCancel(ctx)
	call, interrupt := context.WithCancel(running)
	cl.stopping = stopping{interrupt: interrupt}
	var work sync.WaitGroup
	work.Go(func() {
		result, err := cl.call(running, call, t)
		cl.inbox.put(end{result, err})
	})
	defer func() {
		cl.s.fresh()
		stop()
		work.Wait()
	}()
	return cl.loop()
}

// ClientName is the name that a terminal has for servers.
const ClientName = "codex-mcp-ask"

// options are those of the connection over t.
func (cl *client) options(t jsonrpc.Transport) *codexclient.Options {
	o := &codexclient.Options{
		Dial: func(context.Context) (jsonrpc.Transport, error) {
			if t == nil {
				return nil, codexclient.ErrClosed // the server was a part of this program
			}
			once := t
			t = nil
			return once, nil
		},
		Name: ClientName, Version: cl.task.Version, Protocol: "2025-11-25", MaxMessage: maxMessage,
	}
	if cl.keys != nil {
		o.AskRaw = func(ctx context.Context, asked *codexclient.Question) (json.RawMessage, error) {
			q := &question{ctx: ctx, reply: make(replier, 1)}
			if err := jsonv2.Unmarshal(asked.Params, &q.params); err != nil {
				return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
			}
			cl.inbox.put(q)
			return q.reply.wait(ctx)
		}
	}
	return o
}

// call connects, runs the task until call ends, and returns its result. The connection ends with
// running.
func (cl *client) call(running, call context.Context, t jsonrpc.Transport) (result codexclient.Result, err error) {
	c, err := codexclient.Start(call, cl.options(t))
	if err != nil {
		return result, err
	}
	defer c.Close()
	defer context.AfterFunc(running, func() { c.Close() })()
	task := codexclient.Task{
		Prompt: cl.task.Prompt, Thread: cl.task.Resume, Arguments: cl.task.Arguments,
		Watch: codexclient.Watch{Event: func(e codexclient.Event) { cl.inbox.put(event{e.Msg, e.Raw}) }},
	}
	h := hello{engine: engineOf(c.Info())}
	if cl.task.Resume == Last {
		newest, err := newest(call, c)
		if err != nil {
			return result, err
		}
		task.Thread, h.preview = newest.ID, newest.Preview
	}
	cl.inbox.put(h)
	raw, err := json.Marshal([]any{task.Prompt, task.Arguments})
	if err != nil {
		return result, err
	}
	if len(raw) > MaxTask-envelope {
		return result, ErrTaskTooLong
	}
	return c.Run(call, task)
}

var errNone = errors.New("there is no conversation to continue")

// newest returns the newest conversation of the engine.
func newest(ctx context.Context, c *codexclient.Client) (codexclient.Thread, error) {
	for thread, err := range c.List(ctx, codexclient.Filter{}) {
		if err != nil {
			err = fmt.Errorf("looking for the newest conversation: %w", err)
		}
		return thread, err
	}
	return codexclient.Thread{}, errNone
}

// engineOf returns the name of the server's engine, with the reason for it if that is short.
func engineOf(e codexclient.Info) string {
	const few = 40 // characters; codex-mcp doctor reports a longer one
	switch {
	case e.Engine == "":
		return e.Name
	case e.Reason == "", e.Reason == "the command line says so", len(e.Reason) > few:
		return e.Engine + " engine"
	}
	return e.Engine + " engine (" + e.Reason + ")"
}

// loop owns the screen and the keys until the call has ended.
func (cl *client) loop() int {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		ticks := tick.C
		if len(cl.inbox.news) > 0 {
			ticks = nil // what the server sends goes first
		}
		select { // at random, so that a flood of events does not delay the others
		case <-cl.inbox.news:
			if code, done := cl.handle(cl.inbox.take()); done {
				return code
			}
		case <-ticks:
			cl.out.look()
			cl.sign()
		case sig := <-cl.signals:
			if cl.signalled(sig) {
				return cl.leave()
			}
		case <-cl.stopping.late:
			return cl.leave()
		case <-cl.broken:
			if cl.lose() {
				return cl.leave()
			}
		}
	}
}

// signalled interrupts the turn, or reports that the client must leave at once.
func (cl *client) signalled(sig os.Signal) (leave bool) {
	if sig != os.Interrupt || cl.stopping.interrupted {
		return true
	}
	cl.s.echoed()
	cl.stop()
	if cl.s.seen && !cl.task.JSON {
		cl.s.line("", dim, "stopping · ctrl-C leaves at once")
	}
	return false
}

// handle handles one message of the inbox.
func (cl *client) handle(m any) (code int, done bool) {
	switch m := m.(type) {
	case hello:
		cl.engine = m.engine
		if m.preview != "" && !cl.task.JSON {
			cl.v.open("head")
			cl.s.prose("", 0, dim, "continuing: "+cut(showOutput(oneLine([]byte(m.preview))), 100))
		}
	case event:
		cl.follow(m.msg)
		if cl.task.JSON {
			cl.line(m.raw)
		} else {
			cl.v.event(m.msg)
		}
		if cl.stopping.ended && cl.began.IsZero() {
			return cl.finish(end{err: context.Canceled}), true
		}
	case *question:
		return cl.ask(m)
	case end:
		cl.stopping.ended = true
		if cl.stopping.interrupted && m.err != nil && !cl.began.IsZero() {
			return 0, false // wait for the end of the turn
		}
		return cl.finish(m), true
	}
	return 0, false
}

// follow updates the state of the conversation.
func (cl *client) follow(m protocol.EventMsg) {
	switch m := m.(type) {
	case protocol.SessionConfigured:
		cl.thread = m.SessionID
		if !cl.task.JSON {
			cl.head(m.Model)
		}
	case protocol.TaskStarted:
		cl.began = time.Now()
		cl.s.wrote = cl.began
	case protocol.TaskComplete, protocol.TurnAborted, protocol.ShutdownComplete:
		cl.began = time.Time{}
	}
}

// head shows the engine, the model and the folder.
func (cl *client) head(model string) {
	text := cl.engine
	if model != "" {
		text += " · " + showWord(model)
	}
	if cl.v.cwd != "" {
		text += " · " + cl.v.folder(cl.v.cwd)
	}
	cl.v.open("head")
	cl.s.prose("", 0, dim, showOutput(text))
}

// ask asks the user a question.
func (cl *client) ask(q *question) (code int, done bool) {
	switch {
	case cl.stopping.interrupted:
		return 0, false // the server does not wait for an answer
	case q.ctx.Err() != nil:
		cl.v.open("gone")
		cl.s.line("· ", dim, cut(q.asks(), titleLength)+"  "+q.withdrawn())
		return 0, false
	}
	p := &prompt{
		question: q, s: cl.s, v: cl.v, keys: cl.keys, pause: cmp.Or(cl.task.Pause, usualPause), signals: cl.signals, others: cl.inbox.waiting,
	}
	if p.run() != stopped {
		return 0, false
	}
	cl.stopping.stopped = true
	if p.signal != nil && p.signal != os.Interrupt {
		return cl.leave(), true
	}
	cl.stop()
	return 0, false
}

// stop interrupts the turn.
func (cl *client) stop() {
	cl.stopping.interrupted = true
	cl.stopping.late = time.After(abortTime)
	cl.stopping.interrupt()
}

// lose interrupts the turn because standard output failed. If a signal came first, it
// handles the signal: writes are abandoned after a signal.
func (cl *client) lose() (leave bool) {
	cl.broken = nil
	select {
	case sig := <-cl.signals:
		return cl.signalled(sig)
	default:
	}
	if !cl.stopping.interrupted {
		cl.stopping.lost = true
		cl.stop()
	}
	return false
}

// leave ends the client without waiting for the turn.
func (cl *client) leave() int {
	return cl.finish(end{err: context.Canceled})
}

// sign shows the output that has become due, and after a silence what the turn is doing, and for
// how long.
func (cl *client) sign() {
	if !cl.s.seen || cl.began.IsZero() || cl.stopping.interrupted || cl.task.JSON {
		return
	}
	if cl.v.due(); cl.s.silent() {
		cl.v.sign(cl.began)
	}
}
