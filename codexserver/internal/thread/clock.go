package thread

import (
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// DefaultStall is how long a model may be silent before it counts as stuck.
const DefaultStall = 5 * time.Minute

// StallLimit returns the limit for an option. 0 means [DefaultStall], a negative value means no
// limit and returns 0.
func StallLimit(option time.Duration) time.Duration {
	switch {
	case option < 0:
		return 0
	case option == 0:
		return DefaultStall
	}
	return option
}

// Clock measures the silence of the model in one thread, from the events of its turns and
// the questions. A command or a tool that runs, and an open question, do not count as
// silence. The zero value is a thread without a turn. A Clock is not safe for concurrent
// use.
type Clock struct {
	heard time.Time       // when the model was heard last; zero between turns
	calls map[string]bool // the commands, tools and patches that the model waits for
	asked int             // open questions
}

// Event records an event.
func (c *Clock) Event(m protocol.EventMsg) {
	switch m := m.(type) {
	case protocol.TaskStarted:
		c.heard, c.calls = time.Now(), nil
	case protocol.TaskComplete, protocol.TurnAborted, protocol.Error, protocol.ShutdownComplete:
		c.heard, c.calls = time.Time{}, nil
	case protocol.SessionConfigured, protocol.UserMessage, protocol.BackgroundEvent, protocol.StreamError, protocol.TokenCount:
		// not from the model
	case protocol.ExecCommandBegin:
		c.begin(m.CallID)
	case protocol.MCPToolCallBegin:
		c.begin(m.CallID)
	case protocol.PatchApplyBegin:
		c.begin(m.CallID)
	case protocol.ExecCommandEnd:
		c.end(m.CallID)
	case protocol.MCPToolCallEnd:
		c.end(m.CallID)
	case protocol.PatchApplyEnd:
		c.end(m.CallID)
	case protocol.ExecCommandOutputDelta: // it may run while the model works
	case protocol.AgentMessage, protocol.AgentMessageDelta, protocol.AgentReasoning, protocol.AgentReasoningDelta,
		protocol.AgentReasoningRawContent, protocol.AgentReasoningRawContentDelta:
		c.calls = nil // it does not wait for them
		c.hear()
	default:
		c.hear()
	}
}

// Alive records that the model works, although there is no event.
func (c *Clock) Alive() { c.hear() }

// hear restarts the measurement: the model was heard, or it stopped waiting for a call.
func (c *Clock) hear() {
	if !c.heard.IsZero() {
		c.heard = time.Now()
	}
}

func (c *Clock) begin(call string) {
	if c.heard.IsZero() {
		return // a command of the user's, between turns
	}
	if c.calls == nil {
		c.calls = map[string]bool{}
	}
	c.calls[call] = true
	c.hear()
}

func (c *Clock) end(call string) {
	if c.calls[call] {
		delete(c.calls, call)
		c.hear()
	}
}

// Asked records a question.
func (c *Clock) Asked() { c.asked++ }

// Decided records the end of a question.
func (c *Clock) Decided() {
	c.asked = max(c.asked-1, 0)
	c.hear()
}

// Since returns when the silence of the model began. It is the zero time while the
// model is not waited for.
func (c *Clock) Since() time.Time {
	if c.asked > 0 || len(c.calls) > 0 {
		return time.Time{}
	}
	return c.heard
}
