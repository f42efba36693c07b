package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	processes "github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/plain"
	utf8text "github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	notifyAfter   = time.Second // how long a question is open before the user is told: a rule or the client may decide
	notifyTimeout = 30 * time.Second
	notifyWaiting = 8    // programs that wait for the one that runs; more are dropped
	notifyText    = 2000 // bytes of a text
)

// notification is what the program gets as its last argument, as JSON. The names are those of
// Codex's notifications.
type notification struct {
	Type                 string   `json:"type"`
	ThreadID             string   `json:"thread-id"`
	TurnID               string   `json:"turn-id,omitzero"`
	Cwd                  string   `json:"cwd,omitzero"`
	InputMessages        []string `json:"input-messages,omitzero"`
	LastAssistantMessage *string  `json:"last-assistant-message,omitzero"`
	Status               string   `json:"status,omitzero"`
	Question             string   `json:"question,omitzero"`
}

// notifier runs the user's program for questions that stay open, and for the ends of turns; and for
// each complete turn that of Codex's key notify, as Codex does. One program runs at a time. It is a
// [codexserver.Observer]. It never delays a turn.
type notifier struct {
	command, codex []string
	run            func(ctx context.Context, argv []string) error // replaced by tests
	waiting        chan []string
	life           context.Context
	end            context.CancelFunc
	ended          sync.WaitGroup
	log            *slog.Logger
}

// newNotifier returns the notifier of the settings and of the engine's choice, or nil. A worker has none:
// it is not the user's.
func (c *configuration) newNotifier(e *choice) *notifier {
	if c.observer != nil || len(c.settings.Notify) == 0 && len(e.notify) == 0 {
		return nil
	}
	n := &notifier{command: c.settings.Notify, codex: e.notify, waiting: make(chan []string, notifyWaiting), log: c.log}
	programs := &box.Programs{More: engine.TraitsOf(e.Engine).Reach}
	n.run = func(ctx context.Context, argv []string) error { return runNotify(ctx, programs, argv) }
	n.life, n.end = context.WithCancel(context.Background())
	n.ended.Go(func() {
		for n.life.Err() == nil {
			select {
			case <-n.life.Done():
			case argv := <-n.waiting:
				if err := n.run(n.life, argv); err != nil && n.life.Err() == nil {
					n.log.Warn("the notify program", "program", argv[0], "error", err)
				}
			}
		}
	})
	return n
}

// Close ends the program that runs.
func (n *notifier) Close() {
	n.end()
	n.ended.Wait()
}

// send runs a program after those that wait, unless there is none.
func (n *notifier) send(command []string, m notification) {
	text, err := json.Marshal(m, jsontext.AllowInvalidUTF8(true))
	if len(command) == 0 || err != nil || n.life.Err() != nil {
		return
	}
	select {
	case n.waiting <- append(slices.Clone(command), string(text)):
	default:
		n.log.Warn("a notification is dropped, because too many wait", "type", m.Type, "thread", m.ThreadID)
	}
}

// notifyProgram returns a program as it is started, with its environment and its folder: the user's home, where no command
// can write it.
func notifyProgram(programs *box.Programs, name string) (program, home string, env []string, err error) {
	env, path := programs.Environ(processes.EnvPolicy{IgnoreDefaultExcludes: true,
		IncludeOnly: shown}.Environ(os.Environ()))
	if home, err = os.UserHomeDir(); err == nil {
		program, err = programs.Find(name, home, path)
	}
	if err != nil {
		err = fmt.Errorf("it cannot be started: %w", err)
	}
	return program, home, env, err
}

// runNotify runs a program.
func runNotify(ctx context.Context, programs *box.Programs, argv []string) error {
	program, home, env, err := notifyProgram(programs, argv[0])
	if err != nil {
		return err
	}
	var pool processes.Starter
	result, err := pool.Run(ctx, processes.Spec{Argv: append([]string{program}, argv[1:]...), Dir: home, Env: env,
		Timeout: notifyTimeout}, nil)
	if err == nil && result.ExitCode != 0 {
		err = errors.New("it failed")
	}
	return errors.Join(err, pool.Close())
}

// shown are the variables that the program gets: those that programs on a desktop and in a terminal
// need. None of them is a key of a provider.
var shown = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "TERM_PROGRAM", "TMPDIR",
	"TMUX", "TMUX_PANE", "DISPLAY",
	"WAYLAND_DISPLAY", "XAUTHORITY", "XDG_*", "DBUS_SESSION_BUS_ADDRESS", "CODEX_HOME", "USERPROFILE", "APPDATA",
	"LOCALAPPDATA", "TEMP", "TMP",
	"PATHEXT", "COMSPEC", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR",
}

// Request implements [codexserver.Observer].
func (*notifier) Request(*jsonrpc.Request) (end func()) { return nil }

// Turn implements [codexserver.Observer].
func (n *notifier) Turn(thread string) codexserver.TurnObserver {
	return &notifiedTurn{notifier: n, turn: notification{Type: "agent-turn-complete", ThreadID: thread,
		InputMessages: []string{}}}
}

// notifiedTurn is a turn that may be notified of.
type notifiedTurn struct {
	*notifier
	open sync.Map // a timer for each *approval.Request
	mu   sync.Mutex
	turn notification // at its end
}

// Event implements [codexserver.TurnObserver].
func (t *notifiedTurn) Event(m protocol.EventMsg) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m := m.(type) {
	case protocol.TaskStarted:
		t.turn.TurnID = m.TurnID
	case protocol.UserMessage:
		t.turn.InputMessages = append(t.turn.InputMessages, m.Message)
	case protocol.AgentMessage:
		t.turn.LastAssistantMessage = &m.Message
	}
}

// Asked implements [codexserver.TurnObserver].
func (t *notifiedTurn) Asked(r *approval.Request) {
	m := notification{Type: "approval-requested", ThreadID: t.turn.ThreadID, TurnID: r.Turn,
		Question: brief(plain.OneLine(r.Question.Message, 0))}
	if c, is := r.Subject.(approval.Command); is {
		m.Cwd = brief(c.Cwd)
	}
	t.open.Store(r, time.AfterFunc(notifyAfter, func() { t.send(t.command, m) }))
}

// Decided implements [codexserver.TurnObserver]. A turn that ends decides its questions.
func (t *notifiedTurn) Decided(r *approval.Request, _ approval.Decision) {
	if timer, ok := t.open.LoadAndDelete(r); ok {
		timer.(*time.Timer).Stop()
	}
}

// End implements [codexserver.TurnObserver].
func (t *notifiedTurn) End(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.turn
	if m.Status = "completed"; err == nil {
		t.send(t.codex, t.turn)
	} else if m.Status = "failed"; errors.As(err, new(*engine.AbortError)) {
		m.Status = "aborted"
	}
	if m.InputMessages = []string{}; m.LastAssistantMessage != nil {
		m.LastAssistantMessage = new(brief(*m.LastAssistantMessage))
	}
	t.send(t.command, m)
}

// brief returns the beginning of a text.
func brief(text string) string {
	return utf8text.Brief(strings.ToValidUTF8(text, "\uFFFD"), notifyText)
}
