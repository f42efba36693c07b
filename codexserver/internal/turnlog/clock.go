package turnlog

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// StallLimit returns the limit for an option. 0 means [setting.DefaultStall], a negative value no
// limit and returns 0.
func StallLimit(option time.Duration) time.Duration {
	switch {
	case option < 0:
		return 0
	case option == 0:
		return setting.DefaultStall
	}
	return option
}

// clock measures the silence of the model in a turn. A command or a tool that runs does not count
// as silence. The zero value is a turn that has not begun.
type clock struct {
	heard time.Time       // when the model was heard last; zero between turns
	calls map[string]bool // the commands, tools and patches that the model waits for
}

// start begins the measurement, and stop ends it.
func (c *clock) start() { c.heard, c.calls = time.Now(), nil }
func (c *clock) stop()  { c.heard, c.calls = time.Time{}, nil }

// hear restarts the measurement: the model was heard, or it stopped waiting for a call.
func (c *clock) hear() {
	if !c.heard.IsZero() {
		c.heard = time.Now()
	}
}

// speaks is hear for words of the model, which does not wait for its calls then.
func (c *clock) speaks() {
	c.calls = nil
	c.hear()
}

func (c *clock) begin(call string) {
	if c.heard.IsZero() {
		return // a command of the user's, between turns
	}
	if c.calls == nil {
		c.calls = map[string]bool{}
	}
	c.calls[call] = true
	c.hear()
}

func (c *clock) end(call string) {
	if c.calls[call] {
		delete(c.calls, call)
		c.hear()
	}
}

// since returns when the silence of the model began. It is the zero time while the model is not
// waited for.
func (c *clock) since() time.Time {
	if len(c.calls) > 0 {
		return time.Time{}
	}
	return c.heard
}
