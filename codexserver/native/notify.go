package native

import (
	"slices"
	"strconv"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// notifyTimeout bounds the program that runs at a turn's end.
	notifyTimeout = 30 * time.Second
	// notifyGrace is how long Close waits for the program before it ends it.
	notifyGrace = 500 * time.Millisecond
)

// notification is the last argument of the program, as JSON.
type notification struct {
	Type                 string   `json:"type"`
	TurnID               string   `json:"turn-id"`
	InputMessages        []string `json:"input-messages"`
	LastAssistantMessage *string  `json:"last-assistant-message"`
}

// notify starts the configured program after a complete turn. It does not wait for the
// program; Close does.
func (c *conversation) notify(items []protocol.InputItem, last *string) {
	if len(c.cfg.Notify) == 0 {
		return
	}
	n := notification{Type: "agent-turn-complete", TurnID: strconv.Itoa(c.meter.turns), InputMessages: []string{}, LastAssistantMessage: last}
	for _, item := range items {
		if item.Type == protocol.InputText {
			n.InputMessages = append(n.InputMessages, item.Text)
		}
	}
	text, err := json.Marshal(n, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		c.engine.options.Logger.Warn("the notify program cannot be started", "error", err)
		return
	}
	env, path := c.engine.programs.Environ(c.cfg.Environ)
	argv := append(slices.Clone(c.cfg.Notify), string(text))
	if argv[0], err = c.engine.programs.Find(argv[0], c.now.Cwd, path); err != nil {
		c.engine.options.Logger.Warn("the notify program cannot be started", "error", err)
		return
	}
	spec := proc.Spec{
		Argv:    argv,
		Dir:     c.now.Cwd,
		Env:     env,
		Timeout: notifyTimeout,
	}
	c.work.background.Go(func() {
		result, err := c.engine.processes.Run(c.work.life, spec, nil)
		if err != nil || result.ExitCode != 0 {
			c.engine.options.Logger.Warn("the notify program failed", "program", spec.Argv[0], "exit", result.ExitCode, "error", err)
		}
	})
}
