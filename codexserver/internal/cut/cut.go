// Package cut has what an engine says when it continues a turn whose process was killed. A call that has no
// result may have run, in whole or in part. No engine runs it again: the model and the person are told of it.
package cut

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The reasons why a turn is not continued.
var (
	ErrNotBegun = errors.New("the server ended before this turn began: nothing of it ran, and its message is not in " +
		"the conversation; send it again")
	ErrOvertaken = errors.New("the server ended while this turn ran, and the conversation was continued before this " +
		"turn could be")
)

// Turn is a turn as the conversation's file shows it.
type Turn struct {
	// Own is true if it began with the message whose turn is continued, or with one that continued it.
	Own bool
	// Form is true if it only gave the answer of the own turn before it its form, see [FormKey].
	Form bool
	// Said is true if it has a message of the user.
	Said bool
	// End is how it ended, nil if its process ended before it did.
	End protocol.EventMsg
	// Open are its calls without a result.
	Open []Call
}

// FormKey returns the key of a turn that gives the answer of the turn with a key its form.
func FormKey(key string) string { return key + "-form" }

// Last returns the last of the own turns. Turns after it without a message do not count: a process was killed as soon
// as it had begun to continue. The form of its answer counts only if the model has written it.
func Last(turns []Turn) (*Turn, error) {
	for i, t := range slices.Backward(turns) {
		formed, whole := t.End.(protocol.TaskComplete)
		switch {
		case t.Own, t.Form && whole && formed.Incomplete == "" && formed.LastAgentMessage != nil:
			return &turns[i], nil
		case t.Form:
		case t.Said, t.End != nil:
			if slices.ContainsFunc(turns, func(t Turn) bool { return t.Own }) {
				return nil, ErrOvertaken
			}
		}
	}
	return nil, ErrNotBegun
}

// Call is a call of the model without a result. The model, or who else wrote the conversation's file, chose
// its words.
type Call struct {
	// ID names it.
	ID string
	// Name is the name of the tool.
	Name string
	// Command is the command, nil for another tool.
	Command []string
}

// Of returns a call of a tool with arguments, which are a JSON text or free text.
func Of(name, arguments string) Call {
	var a struct {
		Cmd     string         `json:"cmd"`
		Command jsontext.Value `json:"command"`
	}
	c := Call{Name: name}
	if json.Unmarshal([]byte(arguments), &a) != nil {
		return c
	}
	line := a.Cmd
	switch a.Command.Kind() {
	case '"':
		_ = json.Unmarshal(a.Command, &line)
	case '[':
		if json.Unmarshal(a.Command, &c.Command) != nil || len(c.Command) == 0 {
			c.Command = nil
		}
	}
	if line != "" {
		c.Command = []string{"bash", "-lc", line}
	}
	return c
}

// String returns the call in one short line.
func (c Call) String() string {
	words := c.Name
	if c.Command != nil {
		words = elicit.ShowCommand(c.Command)
	}
	return plain.OneLine(words, 200)
}

// most is how many calls are named. A response of a model has few.
const most = 20

// Head is how the message begins that continues a turn.
const Head = "<interrupted>\nThe server that ran your last turn has ended, "

// Message returns the message that continues a turn, in which the server speaks to the model, and tells note
// of each of the calls.
func Message(open []Call, note func(words string)) []protocol.InputItem {
	var b strings.Builder
	b.WriteString(strings.TrimPrefix(Head, "<interrupted>\n") + "and another one continues the turn here. " +
		"A call without a result, or whose result is \"aborted\" or begins with it, may have run or not, in whole or " +
		"in part, and its processes were killed. " +
		"The user did not interrupt the turn, even if a message says so. No call was repeated. " +
		"Find out what such a call has done before you repeat it. Then continue with the task.\n")
	for i, call := range open {
		if i == most {
			fmt.Fprintf(&b, "There are %d more calls without a result.\n", len(open)-most)
			note(fmt.Sprintf("The server ended while %d more calls were open. They were not run again.",
				len(open)-most))
			break
		}
		fmt.Fprintf(&b, "Without a result: %s\n", call)
		note("The server ended while this call was open: " + call.String() +
			". It may have run or not, and was not run again.")
	}
	return protocol.TextInput(text.Tagged("interrupted", strings.TrimSuffix(b.String(), "\n")))
}

// Event returns the event that says that this process continues a turn.
func Event() protocol.EventMsg {
	return protocol.BackgroundEvent{Message: fmt.Sprintf("the server that ran this turn ended; process %d continues "+
		"it in another turn", os.Getpid())}
}
