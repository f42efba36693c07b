package terminal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	plaintext "github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/go-json-experiment/json/jsontext"
)

// dialogue is the dialogue for one question, an elicitation.
type dialogue struct {
	s      *session
	p      *printer
	ctx    context.Context // ends when the question is withdrawn
	params struct {
		Message string `json:"message"`
		Schema  struct {
			Properties map[string]jsontext.Value `json:"properties"`
			Required   []string                  `json:"required"`
		} `json:"requestedSchema"`
		Meta struct {
			Approval struct {
				Kind    string                         `json:"kind"` // exec or patch
				CallID  string                         `json:"callId"`
				Command []string                       `json:"command"`
				Changes map[string]protocol.FileChange `json:"changes"`
			} `json:"codex/approval"`
		} `json:"_meta"`
	}
	why    map[string]string // why changes deserve attention, as far as the message need not list all of them
	fields []field           // to fill in; nil for an approval
	again  string            // the words of an approval for the session, "" if none is offered
	always string            // the lasting rule that is offered, "" if there is none
}

// errStopped means that the user stops the turn.
var errStopped = errors.New("stopped")

// answer is the result of elicitation/create.
type answer struct {
	Action  string         `json:"action"`
	Content map[string]any `json:"content,omitzero"`
}

// run prints the question and reads lines until one answers it. An error means that it was withdrawn, or
// cannot be asked.
func (d *dialogue) run() (answered *answer, err error) {
	d.print()
	for answered == nil && err == nil {
		if err = d.quiet(); err == nil {
			answered, err = d.decide()
		}
	}
	switch {
	case errors.Is(err, errStopped):
		d.s.stop()
		d.p.line("  ", "■ stopped")
		return &answer{Action: "cancel"}, nil
	case d.ctx.Err() != nil:
		_ = d.s.typed.flush() // the next program does not get what was typed
		d.p.prose("  ", "· "+d.withdrawn())
	}
	return answered, err
}

// withdrawn says that the server no longer waits for an answer, and why, if the server says so.
func (d *dialogue) withdrawn() string {
	err := context.Cause(d.ctx)
	_, reason, _ := strings.Cut(err.Error(), jsonrpc.ErrCancelled.Error()+": ")
	switch {
	case !errors.Is(err, jsonrpc.ErrCancelled):
		reason = "the server is gone"
	case reason == "", reason == context.Canceled.Error():
		reason = "it was answered elsewhere, or the turn is over"
	}
	return "withdrawn: " + Row(reason)
}

// print prints the question, with all lines of its command or its changes.
func (d *dialogue) print() {
	a := &d.params.Meta.Approval
	d.p.open("")
	if a.CallID != "" {
		d.p.asked[a.CallID], d.p.block = true, a.CallID // what an approved patch does stands below it
	}
	switch {
	case a.Kind == "patch":
		d.p.changes(a.Changes, d.why, true)
		d.p.write("\n")
	case a.Kind == "exec" && (strings.Contains(strings.Join(a.Command, ""), "\n") ||
		!strings.Contains(d.params.Message, written(a.Command))):
		d.p.line("", "The command, line by line:")
		for _, word := range a.Command {
			for line := range strings.SplitSeq(word, "\n") {
				d.p.line("  │ ", elicit.ShowText(line))
			}
		}
		d.p.write("\n")
	}
	message := strings.Split(d.params.Message, "\n")
	asks := max(0, slices.IndexFunc(message, func(line string) bool { return strings.HasPrefix(line, "Allow ") }))
	for i, line := range message {
		if a.Kind == "patch" && i != asks &&
			(strings.HasPrefix(line, approval.DiffIndent) || strings.HasPrefix(line, plaintext.WholeIs)) {
			continue // shown above, and there as a whole
		}
		prefix := "  "
		if i == asks {
			prefix = mark + " "
		}
		d.p.row(prefix, elicit.ShowText(line))
	}
	if d.always != "" {
		d.p.prose("  w: ", d.always)
	}
}

// choices returns the answers, in lines that the terminal need not break.
func (d *dialogue) choices() string {
	if d.fields != nil {
		return "  y fill in   n decline   s stop"
	}
	all := "y once"
	if d.again != "" {
		all += "   a " + d.again
	}
	if d.always != "" {
		all += "   w always"
	}
	all += "   n deny   n WHY deny and say why   s stop"
	together := strings.NewReplacer("   ", "\u00a0\u00a0 ", " ", "\u00a0") // the words of an answer
	return strings.NewReplacer("\u00a0", " ", "\n", "\n  ").Replace("  " + d.p.wrap(together.Replace(all), 2))
}

// decide reads a line and returns the answer that it is, or nil.
func (d *dialogue) decide() (*answer, error) {
	text, err := d.read(d.choices() + "\n  > ")
	if err != nil {
		return nil, err
	}
	answer := &answer{Action: "accept"}
	key, why, _ := strings.Cut(text, " ")
	key, said := strings.ToLower(key), ""
	switch {
	case key == "n" && (why == "" || d.fields == nil):
		answer.Action, said = "decline", "✗ denied"
		if why != "" {
			answer.Content = map[string]any{"feedback": strings.TrimSpace(why)}
			said += ", with your reason"
		}
	case why != "":
	case key == "s":
		return nil, errStopped
	case key == "y" && d.fields != nil:
		answer.Content, err = d.fillIn()
		said = "✓ answered"
	case key == "y":
		said = "✓ approved"
	case key == "a" && d.again != "":
		answer.Content = map[string]any{"decision": elicit.ApprovedForSession}
		said = "✓ approved " + d.again
	case key == "w" && d.always != "":
		answer.Content = map[string]any{"decision": elicit.ApprovedAlways}
		said = "✓ approved, always"
	}
	switch {
	case err != nil:
		return nil, err
	case said == "":
		d.p.prose("  ", "That is no answer, and nothing was decided. Type one of these letters, and Enter; "+
			"ctrl-C stops the turn.")
		return nil, nil
	}
	d.p.prose("  ", said)
	return answer, nil
}

// read prints what to type and reads a line. It returns "" if several lines came at once.
func (d *dialogue) read(ask string) (string, error) {
	d.p.fresh()
	d.p.write(plain(ask))
	text, _, err := d.wait(nil)
	if err != nil {
		return "", err
	}
	d.p.mid = false // the terminal has shown the Enter key
	const gap = 50 * time.Millisecond
	if more, err := d.lull(gap); more || err != nil {
		return "", err
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, "")), nil
}

// quiet waits until no line has come for the pause, and discards what was typed: it belongs to something
// else that the user is typing.
func (d *dialogue) quiet() error {
	const pause = 300 * time.Millisecond
	if _, err := d.lull(pause); err != nil {
		return err
	}
	if err := d.s.typed.flush(); err != nil {
		err = fmt.Errorf("the terminal cannot be read: %w", err)
		d.p.note("a question cannot be asked here: " + err.Error())
		return err
	}
	return nil
}

// lull waits until no line has come for a while, and reports whether one had.
func (d *dialogue) lull(long time.Duration) (some bool, err error) {
	for {
		_, came, err := d.wait(time.After(long))
		if !came || err != nil {
			return some, err
		}
		some = true
	}
}

// wait waits for a line, for late, or until the question is withdrawn.
func (d *dialogue) wait(late <-chan time.Time) (text string, came bool, err error) {
	select {
	case text = <-d.s.typed.next():
		d.s.typed.busy, came = false, true
	case <-late:
	case <-d.ctx.Done():
	case <-d.s.turn.Done():
	}
	switch {
	case d.ctx.Err() != nil: // a line that came at the same moment does not count
		return "", false, context.Cause(d.ctx)
	case d.s.turn.Err() != nil, came && text == "":
		return "", false, errStopped
	}
	return text, came, nil
}
