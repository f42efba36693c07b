package appserver

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// messages are the user's messages to a turn: its own prompt, and those that came while it ran. The
// turn's lock guards them.
type messages struct {
	prompted bool      // the turn's own input has been read
	letters  []*letter // those that came while the turn ran
}

// letter is a message to a running turn. When the turn is interrupted, the app-server
// drops messages that the model has not read.
type letter struct {
	input []apptypes.Input
	taken bool // by the app-server
	read  bool // by the model
}

// event returns the message in the form in which the app-server reports that the model has
// read it. Only the text identifies it: some versions do not report the client's id.
func (l *letter) event() protocol.UserMessage {
	m := protocol.UserMessage{Kind: protocol.UserPlain}
	for _, it := range l.input {
		if it.Text != nil {
			m.Message += *it.Text
		}
		if it.URL != nil {
			m.Images = append(m.Images, *it.URL)
		}
	}
	return m
}

// read records that the model has read a message of the user with a text. The first one is the turn's
// own input; the others came while it ran. It returns whether to report the message; none is after the
// end.
func (m *messages) read(text string, ended bool) bool {
	if !m.prompted {
		m.prompted = true
		return false
	}
	if ended {
		return false
	}
	for _, l := range m.letters {
		if !l.read && l.event().Message == text {
			l.read = true
			return true
		}
	}
	return false
}

// missed returns the events about messages that the model did not read before the turn's end.
func (m *messages) missed() (events []protocol.EventMsg) {
	for _, l := range m.letters {
		if l.taken && !l.read {
			events = append(events, l.event())
		}
	}
	if len(events) > 0 {
		events = append(events, protocol.BackgroundEvent{Message: fmt.Sprintf(
			"the turn ended before the model read all messages to it; it will read %d in the next turn", len(events))})
	}
	return events
}

// unread returns the messages that the model did not read. They follow left, those of
// earlier turns, unless the model has read the turn's input, which began with these.
func (m *messages) unread(left []apptypes.Input) []apptypes.Input {
	if m.prompted {
		left = nil
	}
	for _, l := range m.letters {
		if l.taken && !l.read {
			left = append(left, l.input...)
		}
	}
	return left
}

// clientOf returns the id that a client gave its message.
func clientOf(raw stdjson.RawMessage) string {
	var it apptypes.UserMessage
	if json.Unmarshal(raw, &it) != nil {
		return ""
	}
	return it.ClientID
}
