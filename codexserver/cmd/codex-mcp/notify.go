package main

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/codexmcp/codexmcp/elicit"
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
	ended          chan struct{}
	log            func(msg string, args ...any)
}

// newNotifier returns the notifier of the settings and of the engine's choice, or nil.
func (c *configuration) newNotifier(e *choice) *notifier {
	if len(c.settings.Notify) == 0 && len(e.notify) == 0 {
		return nil
	}
	n := &notifier{command: c.settings.Notify, codex: e.notify, waiting: make(chan []string, notifyWaiting), ended: make(chan struct{}), log: c.log.Warn}
	n.run = runsIn(&box.Programs{More: engine.TraitsOf(e.Engine).Reach})
	n.life, n.end = context.WithCancel(context.Background())
	go func() {
		defer close(n.ended)
		for {
			select {
			case <-n.life.Done():
				return
			case argv := <-n.waiting:
				if err := n.run(n.life, argv); err != nil && n.life.Err() == nil {
					n.log("the notify program", "program", argv[0], "error", err)
				}
			}
		}
	}()
	return n
}

// Close ends the program that runs.
func (n *notifier) Close() error {
	n.end()
	<-n.ended
	return nil
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
		n.log("a notification is dropped, because too many wait", "type", m.Type, "thread", m.ThreadID)
	}
}

// runsIn returns a function that runs one of the programs in the user's home, where no command can write it.
func runsIn(programs *box.Programs) func(context.Context, []string) error {
	return func(ctx context.Context, argv []string) error {
		env, path := programs.Environ(os.Environ())
		home, err := os.UserHomeDir()
		if err == nil {
			argv = slices.Clone(argv)
			argv[0], err = programs.Find(argv[0], home, path)
		}
		if err != nil {
			return fmt.Errorf("it cannot be started: %w", err)
		}
		var pool processes.Starter
		result, err := pool.Run(ctx, processes.Spec{Argv: argv, Dir: home, Env: slices.DeleteFunc(env, hidden), Timeout: notifyTimeout}, nil)
		if err == nil && result.ExitCode != 0 {
			err = errors.New("it failed")
		}
		return errors.Join(err, pool.Close())
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
	return &notifiedTurn{notifier: n.notifier, end: notification{Type: "agent-turn-complete", ThreadID: thread, InputMessages: []string{}}, open: map[*approval.Request]*time.Timer{}}
}

// End implements [codexserver.CallObserver].
func (notifiedCall) End(error) {}

// notifiedTurn is a turn that may be notified of.
type notifiedTurn struct {
	notifier *notifier
	mu       sync.Mutex
	end      notification
	open     map[*approval.Request]*time.Timer
}

// Event implements [codexserver.TurnObserver].
func (t *notifiedTurn) Event(m protocol.EventMsg) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m := m.(type) {
	case protocol.TaskStarted:
		t.end.TurnID = m.TurnID
	case protocol.UserMessage:
		t.end.InputMessages = append(t.end.InputMessages, m.Message)
	case protocol.AgentMessage:
		t.end.LastAssistantMessage = &m.Message
	}
}

// Asked implements [codexserver.TurnObserver].
func (t *notifiedTurn) Asked(r *approval.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := notification{Type: "approval-requested", ThreadID: t.end.ThreadID, TurnID: r.Turn, Question: brief(elicit.OneLine(r.Question.Message, 0))}
	if e, is := r.Event.(protocol.ExecApprovalRequest); is {
		m.Cwd = brief(e.Cwd)
	}
	t.open[r] = time.AfterFunc(notifyAfter, func() { t.notifier.send(t.notifier.command, m) })
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
	m := t.end
	if m.Status = "completed"; err == nil {
		t.notifier.send(t.notifier.codex, t.end)
	} else if m.Status = "failed"; errors.As(err, new(*engine.AbortError)) {
		m.Status = "aborted"
	}
	if m.InputMessages = []string{}; m.LastAssistantMessage != nil {
		m.LastAssistantMessage = new(brief(*m.LastAssistantMessage))
	}
	t.notifier.send(t.notifier.command, m)
}

// brief returns the beginning of a text.
func brief(text string) string {
	if len(text) > notifyText {
		text = text[:notifyText] + "\u2026"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
