package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/client"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/program"
	"github.com/codexmcp/codexmcp/jsonrpc"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Task is a task for the server.
type Task struct {
	// Prompt is the text of the task.
	Prompt string
	// Check is the command that says whether the task is done. Empty means that none does.
	Check string
	// Attempts is how many attempts are made at once. 0 is one, without a worktree.
	Attempts int
	// Images are the paths of the images that come with it.
	Images []string
	// Resume continues the conversation with this id. Empty begins a new one.
	Resume string
	// About is what is said of a conversation that continues, in lines.
	About []string
	// Folder is the folder of a new conversation, as far as the client knows.
	Folder string
	// JSON writes every event and the result to standard output, each as one line of
	// JSON, and nothing else.
	JSON bool
	// Program is the command that continues the conversation, such as "codex-mcp ask", with its flags as a shell takes them.
	// Empty means that none can.
	Program string
	// Left are the flags, -c with its key, whose values Program does not repeat, because they may be secrets.
	Left []string
}

const (
	// ClientName is the name that a terminal has for servers.
	ClientName = "codex-mcp-ask"
	// MaxTask is the longest task, in bytes. The server accepts messages of 64 MiB, in which one byte takes up to six.
	MaxTask = 8 << 20
)

// The exit statuses of Run.
const (
	StatusAnswered    = 0
	StatusFailed      = 1   // what was refused, is incomplete or failed
	StatusImpossible  = 3   // without a key, an engine or a network nothing could begin
	StatusInterrupted = 130 // as in shells: 128 and the number of SIGINT
)

const (
	maxMessage = 1 << 30 // the server is a part of this program, and repeats the answer in its result
	abortTime  = 5 * time.Second
)

// session is one run of a task. Its printer and its input belong to whoever has put a value into busy: the
// function that prints an event, or a question until it is decided, so that nothing scrolls it away.
type session struct {
	p     *printer
	busy  chan struct{} // has room for one
	task  *Task
	out   *output
	typed *typed          // nil if nobody can be asked
	turn  context.Context // ends when the turn is interrupted
	stop  func()          // interrupts the turn

	thread string
	opened bool  // the server has opened it
	over   bool  // the end was printed
	failed error // of standard output
}

func (s *session) hold() (release func()) {
	s.busy <- struct{}{}
	return func() { <-s.busy }
}

// Run runs a task on the server at the other end of t and returns the exit status. The
// first os.Interrupt of signals interrupts the turn. A second one, or any other signal,
// ends Run at once. When standard output cannot be written, or its reader is gone, Run
// interrupts the turn and returns StatusFailed.
func Run(ctx context.Context, t jsonrpc.Transport, c *Console, task *Task, signals <-chan os.Signal) int {
	out := &output{w: c.Out, failed: make(chan error, 2)}
	s := &session{busy: make(chan struct{}, 1), task: task, out: out}
	s.p = &printer{w: c.Err, cwd: task.Folder, asks: c.Asks(task.JSON), holds: !c.OutTerminal, asked: map[string]bool{},
		titles: map[string]string{}, width: c.Width, rewrites: c.Rewrites}
	if c.OutTerminal && !task.JSON {
		s.p.w = out
	}
	if s.p.asks {
		s.typed = &typed{in: c.Input, got: make(chan string, 1)}
	}
	if c.Left != nil {
		go func() { // a turn can be silent for a long time
			if c.Left() {
				out.failed <- syscall.EPIPE
			}
		}()
	}
	code := s.run(ctx, t, signals)
	if err := cmp.Or(out.err, s.failed); err != nil {
		fmt.Fprintf(c.Err, "%s: standard output: %v\n", cmp.Or(task.Program, "ask"), err)
		return StatusFailed
	}
	return code
}

// run waits until the call has ended, or is to be left.
func (s *session) run(ctx context.Context, t jsonrpc.Transport, signals <-chan os.Signal) int {
	running, leave := context.WithCancel(ctx)
	call, stop := context.WithCancel(running)
	defer stop()
	s.turn, s.stop = call, stop
	var result client.Result
	var err error
	done := make(chan struct{}) // closed when they are there
	var work sync.WaitGroup
	work.Go(func() {
		defer close(done)
		result, err = s.call(running, call, t)
	})
	end := func(r client.Result, err error) int {
		interrupted := call.Err() != nil
		stop() // so that an open question ends
		defer work.Wait()
		defer leave()
		defer s.hold()()
		defer s.p.fresh()
		s.over = true
		return s.finish(&r, err, interrupted)
	}
	stopped := call.Done()
	var late <-chan time.Time
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select { // at random, so that a flood of events does not delay the others
		case <-done:
			return end(result, err)
		case <-late:
			return end(client.Result{}, context.Canceled)
		case <-stopped: // by a signal, by an answer, or since the output has failed
			stopped, late = nil, time.After(abortTime)
		case s.failed = <-s.out.failed:
			s.stopping()
		case sig := <-signals:
			if sig != os.Interrupt || call.Err() != nil {
				return end(client.Result{}, context.Canceled)
			}
			s.stopping()
		case <-second.C:
			if call.Err() == nil {
				s.idle(s.p.tick)
			}
		}
	}
}

// idle calls f, unless something is being printed, a question is open, or the end was printed.
func (s *session) idle(f func()) {
	select {
	case s.busy <- struct{}{}:
		if !s.task.JSON && !s.over {
			f()
		}
		<-s.busy
	default:
	}
}

// stopping interrupts the turn, and says what a signal does, unless a question is open, which says it itself.
func (s *session) stopping() {
	if s.turn.Err() != nil {
		return
	}
	defer s.stop()
	s.idle(func() {
		s.p.mid = s.p.drawn == 0 // the terminal has shown ^C
		s.p.line("", "stopping · ctrl-C leaves at once")
	})
}

// call connects over t, runs the task until call ends, and returns its result. The connection ends with
// running.
func (s *session) call(running, call context.Context, t jsonrpc.Transport) (result client.Result, err error) {
	o := &client.Options{
		Dial: func(context.Context) (jsonrpc.Transport, error) {
			once := t
			if t = nil; once == nil {
				return nil, client.ErrClosed // the server was a part of this program
			}
			return once, nil
		},
		Name: ClientName, Version: program.Version(), Protocol: "2025-11-25", MaxMessage: maxMessage,
	}
	if s.typed != nil {
		o.AskRaw = s.ask
	}
	c, err := client.Start(call, o)
	if err != nil {
		return result, err
	}
	defer c.Close()
	defer context.AfterFunc(running, func() { c.Close() })()
	engine := cmp.Or(c.Info().Engine, c.Info().Name)
	task := client.Task{
		Prompt: s.task.Prompt, Thread: s.task.Resume,
		Watch: client.Watch{Event: func(e client.Event) { s.follow(engine, e) }},
	}
	task.Arguments = map[string]any{}
	if s.task.Check != "" {
		task.Arguments["check"] = s.task.Check
	}
	if s.task.Attempts > 0 {
		task.Arguments["attempts"] = s.task.Attempts
	}
	if len(s.task.Images) > 0 {
		task.Arguments["images"] = s.task.Images
	}
	for _, line := range s.task.About {
		s.head(line)
	}
	return c.Run(call, task)
}

// follow prints an event.
func (s *session) follow(engine string, e client.Event) {
	defer s.hold()()
	if s.over {
		return
	}
	if m, ok := e.Msg.(protocol.SessionConfigured); ok && (!s.opened || s.task.Attempts < 2) {
		s.thread, s.opened = m.SessionID, true
		text := Row(engine) + " engine"
		if m.Model != "" {
			text += " · " + word(m.Model)
		}
		if s.p.cwd != "" {
			text += " · " + word(s.p.cwd)
		}
		if s.task.Attempts > 1 {
			text += fmt.Sprintf(" · %d attempts", s.task.Attempts)
		}
		s.head(text)
	}
	if s.task.Attempts > 1 {
		if !s.task.JSON { // the events of all would be one stream
			s.p.attempt(e.Thread, e.Msg)
		}
		return
	}
	if s.task.JSON {
		io.WriteString(s.out, Line(e.Raw)) // output records an error
	} else {
		s.p.event(e.Msg)
	}
}

// head prints what is said of a conversation before its turn.
func (s *session) head(text string) {
	if !s.task.JSON {
		s.p.open("head")
		s.p.row("", text)
	}
}

// ask asks the user a question, after those before it.
func (s *session) ask(ctx context.Context, asked *client.Question) (json.RawMessage, error) {
	d := &dialogue{s: s, p: s.p, ctx: ctx}
	err := jsonv2.Unmarshal(asked.Params, &d.params)
	if err == nil {
		err = d.form()
	}
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	}
	defer s.hold()()
	switch {
	case ctx.Err() != nil:
		if !s.over {
			s.p.open("gone")
			s.p.prose("· ", brief(asked.Message)+"  "+d.withdrawn())
		}
		return nil, context.Cause(ctx)
	case s.turn.Err() != nil:
		return nil, s.turn.Err() // the server does not wait for an answer
	}
	answer, err := d.run()
	if err != nil {
		return nil, err
	}
	return jsonv2.Marshal(answer)
}

// result is the last line of the JSON form.
type result struct {
	// Type is "result".
	Type string `json:"type"`
	// ThreadID is the conversation's id, "" when none began.
	ThreadID string `json:"threadId"`
	// Text is the answer, or why there is none.
	Text string `json:"text"`
	// IsError means that there is no answer.
	IsError bool `json:"isError"`
	// Notes say why the user could not be asked, and what was not approved.
	Notes []string `json:"notes,omitempty"`
}

// finish prints how the call ended and returns the exit status.
func (s *session) finish(r *client.Result, err error, interrupted bool) int {
	code, failed, texts := StatusAnswered, StatusImpossible, []string{r.Answer}
	worked := r.Usage != nil || len(r.Commands)+len(r.Refused) > 0 || s.p.message.last != ""
	if worked {
		failed = StatusFailed
	}
	switch {
	case err == nil:
		texts = append(texts, r.Notes...)
		for _, refusal := range r.Refused {
			texts = append(texts, refusal.String())
		}
		if texts[0] == "" && len(texts) == 1 && len(r.Refused) == 0 {
			texts = append(texts, cmp.Or(strings.TrimSpace(r.Content), "the model ended the turn without words"))
		}
		if r.Status == protocol.StatusFailed || r.Status == protocol.StatusAborted {
			code = failed
		}
		s.thread = cmp.Or(r.ThreadID, s.thread)
	case errors.Is(err, context.Canceled):
		interrupted, texts[0] = true, "interrupted"
	case errors.Is(err, jsonrpc.ErrClosed):
		code, texts[0] = StatusImpossible, "the server is gone"
	default:
		code, texts[0] = failed, err.Error()
	}
	if interrupted {
		code = StatusInterrupted
	}
	if s.task.JSON {
		line, err := jsonv2.Marshal(result{"result", s.thread, texts[0], code != StatusAnswered, texts[1:]},
			jsontext.AllowInvalidUTF8(true))
		if err == nil {
			io.WriteString(s.out, Line(line))
		}
	} else {
		for _, tool := range []string{"codex: ", "codex-reply: "} { // models learn which tool failed
			if reason, ok := strings.CutPrefix(texts[0], tool); ok && code != StatusAnswered {
				texts[0] = "error: " + reason
			}
		}
		s.p.end(code != StatusAnswered, texts)
		if s.p.holds && code == StatusAnswered && texts[0] != "" {
			io.WriteString(s.out, strings.TrimRight(Prose(texts[0]), "\n")+"\n")
		}
		s.foot(worked)
	}
	nobody := func(one protocol.Refusal) bool { return one.By == string(approval.ByNobody) }
	if code == StatusAnswered && (r.Status == protocol.StatusIncomplete || slices.ContainsFunc(r.Refused, nobody)) {
		return StatusFailed // the answer is not whole, or not all of it could be done
	}
	return code
}

// foot prints the tokens used and the command that continues, unless nothing worked.
func (s *session) foot(worked bool) {
	var rows []string
	if in, out := s.p.tokens(); in+out > 0 {
		rows = append(rows, fmt.Sprintf("tokens: %d in, %d out", in, out))
	}
	// else there is nothing to continue
	if s.opened && s.task.Program != "" && (s.task.Resume != "" || s.p.failure == "" || worked) {
		rows = append(rows, fmt.Sprintf(`continue with: %s --resume %s "…"`, s.task.Program, word(s.thread)))
		if len(s.task.Left) > 0 {
			rows = append(rows, "and again with "+Row(strings.Join(s.task.Left, ", "))+", whose values may be secrets")
		}
	}
	if len(rows) > 0 {
		s.p.open("")
		s.p.line("", strings.Join(rows, "\n"))
	}
}
