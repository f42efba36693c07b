package main

import (
	"context"
	"errors"
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
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	processes "github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The limits of notifications. More are dropped.
const (
	notifyTimeout = 30 * time.Second
	notifyAtOnce  = 4
	notifyMinute  = 30
	notifyText    = 2000 // bytes of a text
	// notifyRule is how long a question is open at least, so that a rule decides first.
	notifyRule = 100 * time.Millisecond
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
// each complete turn that of Codex's key notify, as Codex does. It is a [codexserver.Observer]. It
// never delays a turn.
type notifier struct {
	settings  config.Notify
	codex     []string // the program of Codex's key
	programs  *box.Programs
	processes processes.Starter
	log       *slog.Logger
	run       func(argv []string) // replaced by tests

	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	now    int         // that run
	recent []time.Time // the starts of the last minute
}

// newNotifier returns the notifier of the settings and of the engine's choice, or nil.
func (c *configuration) newNotifier(e *choice) *notifier {
	n := &notifier{codex: e.notify, settings: c.settings.Notify, programs: &box.Programs{More: engine.TraitsOf(e.Engine).Reach}, log: c.log}
	if len(n.settings.Command) == 0 && len(n.codex) == 0 {
		return nil
	}
	n.run = n.start
	n.life, n.end = context.WithCancel(context.Background())
	return n
}

// Close ends the programs that run.
func (n *notifier) Close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.end()
	n.running.Wait()
	return n.processes.Close()
}

// send runs the program of the settings, if it is for such notifications.
func (n *notifier) send(m notification) {
	if slices.Contains(n.settings.On, m.Type) {
		n.sendTo(n.settings.Command, m)
	}
}

// sendTo runs a program, unless there is none or there are too many notifications.
func (n *notifier) sendTo(command []string, m notification) {
	if len(command) == 0 {
		return
	}
	text, err := json.Marshal(m, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	n.recent = slices.DeleteFunc(n.recent, func(t time.Time) bool { return now.Sub(t) > time.Minute })
	if n.closed || n.now >= notifyAtOnce || len(n.recent) >= notifyMinute {
		n.log.Warn("a notification is dropped, because there are too many", "type", m.Type, "thread", m.ThreadID)
		return
	}
	n.recent = append(n.recent, now)
	n.now++
	n.running.Go(func() {
		n.run(append(slices.Clone(command), string(text)))
		n.mu.Lock()
		defer n.mu.Unlock()
		n.now--
	})
}

// start runs a program in the user's home.
func (n *notifier) start(argv []string) {
	env, path := n.programs.Environ(os.Environ())
	home, err := os.UserHomeDir()
	if err == nil {
		argv[0], err = n.programs.Find(argv[0], home, path)
	}
	if err != nil {
		n.log.Warn("the notify program cannot be started", "error", err)
		return
	}
	result, err := n.processes.Run(n.life, processes.Spec{Argv: argv, Dir: home, Env: slices.DeleteFunc(env, hidden), Timeout: notifyTimeout}, nil)
	if err != nil && errors.Is(n.life.Err(), context.Canceled) {
		return
	}
	if err != nil || result.ExitCode != 0 {
		n.log.Warn("the notify program failed", "program", argv[0], "exit", result.ExitCode, "error", err)
	}
}

// shown are the variables that the program gets: those that programs on a desktop and in a terminal
// need. None of them is a key of a provider.
var shown = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TERM_PROGRAM", "TMPDIR", "TMUX", "TMUX_PANE", "DISPLAY",
	"WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "CODEX_HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP",
	"PATHEXT", "COMSPEC", "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR",
}

// hidden reports whether the program does not get a variable.
func hidden(entry string) bool {
	name, _, _ := strings.Cut(entry, "=")
	name = strings.ToUpper(name)
	return !slices.Contains(shown, name) && !strings.HasPrefix(name, "LC_") && !strings.HasPrefix(name, "XDG_")
}

// Begin implements [codexserver.Observer].
func (n *notifier) Begin(context.Context, *codexserver.Request) codexserver.CallObserver {
	return notifiedCall{n}
}

type notifiedCall struct{ *notifier }

// Turn implements [codexserver.CallObserver].
func (n notifiedCall) Turn(thread string, _ protocol.TokenUsage) codexserver.TurnObserver {
	return &notifiedTurn{notifier: n.notifier, thread: thread, began: time.Now(), open: map[*approval.Request]*time.Timer{}}
}

// End implements [codexserver.CallObserver].
func (notifiedCall) End(error) {}

// notifiedTurn is a turn that may be notified of.
type notifiedTurn struct {
	notifier *notifier
	thread   string
	began    time.Time

	mu    sync.Mutex
	id    string
	asked []string
	last  *string
	open  map[*approval.Request]*time.Timer
}

// Event implements [codexserver.TurnObserver].
func (t *notifiedTurn) Event(m protocol.EventMsg) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m := m.(type) {
	case protocol.TaskStarted:
		t.id = m.TurnID
	case protocol.UserMessage:
		t.asked = append(t.asked, m.Message)
	case protocol.AgentMessage:
		t.last = &m.Message
	}
}

// Asked implements [codexserver.TurnObserver].
func (t *notifiedTurn) Asked(r *approval.Request) {
	m := notification{Type: config.NotifyQuestion, ThreadID: t.thread, TurnID: r.Turn, Question: brief(elicit.OneLine(r.Question.Message, 0))}
	switch e := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		m.Cwd = brief(e.Cwd)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[r] = time.AfterFunc(max(t.notifier.settings.After, notifyRule), func() { t.notifier.send(m) })
}

// Decided implements [codexserver.TurnObserver].
func (t *notifiedTurn) Decided(r *approval.Request, _ approval.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timer := t.open[r]; timer != nil {
		timer.Stop()
		delete(t.open, r)
	}
}

// End implements [codexserver.TurnObserver].
func (t *notifiedTurn) End(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, timer := range t.open {
		timer.Stop()
	}
	clear(t.open)
	m := notification{Type: config.NotifyEnd, ThreadID: t.thread, TurnID: t.id, InputMessages: append([]string{}, t.asked...), LastAssistantMessage: t.last}
	if err == nil {
		t.notifier.sendTo(t.notifier.codex, m)
	}
	if time.Since(t.began) < t.notifier.settings.After {
		return
	}
	status := "completed"
	var abort *engine.AbortError
	switch {
	case errors.As(err, &abort):
		status = "aborted"
	case err != nil:
		status = "failed"
	}
	m.Status, m.InputMessages = status, []string{}
	if m.LastAssistantMessage != nil {
		m.LastAssistantMessage = new(brief(*m.LastAssistantMessage))
	}
	t.notifier.send(m)
}

// brief returns the beginning of a text.
func brief(text string) string {
	if len(text) > notifyText {
		text = text[:notifyText] + "\u2026"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
