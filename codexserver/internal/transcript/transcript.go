package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
)

const (
	maxEntry = 1 << 20 // bytes of one message
	maxLine  = 2 << 10 // bytes of a text on one line
	maxPaths = 20      // paths of a patch

	codex = "codex:" // before the model's words
)

// Entry writes a heading on its own line, and an indented body.
func (l *Log) Entry(heading, body string) { l.write(func() { l.entry(heading, body) }) }

// Said writes an event that says something: a message of the user or the model, an error, or that another model
// answers.
func (l *Log) Said(m protocol.EventMsg) {
	if heading, body := says(m); heading != "" {
		l.Entry(heading, body)
	}
}

// says returns the entry for an event that says something. The heading is "" for others.
func says(e protocol.EventMsg) (heading, body string) {
	switch m := e.(type) {
	case protocol.UserMessage:
		if m.Kind == "" || m.Kind == protocol.UserPlain {
			return "user:", m.Message
		}
	case protocol.AgentMessage:
		return codex, m.Message
	case protocol.Error:
		return "error:", m.Message
	case protocol.ModelReroute:
		return "model:", m.Words()
	}
	return "", ""
}

// entry is Entry under the lock.
func (l *Log) entry(heading, body string) {
	l.keep(heading, body)
	if heading == codex {
		heading = cmp.Or(Line(l.Engine), "codex") + ":"
	}
	l.show(heading, body)
}

// keep writes an entry that the page does not show.
func (l *Log) keep(heading, body string) { l.transcript.write(entryOf(heading, body, maxEntry, "  ")) }

// entryOf returns a heading and a body of at most most bytes, each line of which begins with the indent.
func entryOf(heading, body string, most int, indent string) string {
	var b strings.Builder
	b.WriteString(valid(heading) + "\n")
	body, _ = middle(valid(body), most)
	for line := range strings.Lines(strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")) {
		b.WriteString(indent + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

// Past writes what was said in the thread before this server resumed it.
func (l *Log) Past(messages []json.RawMessage) {
	l.write(func() {
		begin := sync.OnceFunc(func() { l.entry("=== what was said before", "") })
		for _, raw := range messages {
			m, _ := protocol.ParseEvent(raw) // nil says nothing
			if heading, body := says(m); heading != "" {
				begin()
				l.entry(heading, body)
			}
		}
	})
}

// Refused writes what the engine refused by itself, with the message of the event.
func (l *Log) Refused(r *protocol.Refused, message string) {
	switch {
	case message != "":
		l.Entry("refused by the "+cmp.Or(r.By, "engine")+":", message)
	case len(r.Command) > 0:
		l.Entry("refused by the engine: "+commandLine(r.Command), r.Reason)
	case len(r.Changes) > 0:
		l.Entry("refused by the engine: the patch", patchLines(r.Changes)+"\n"+r.Reason)
	default:
		l.Entry("refused by the engine: "+Line(cmp.Or(r.Hostname, r.Tool)), r.Reason)
	}
}

// Plan writes the model's plan.
func (l *Log) Plan(plan []protocol.PlanStep) {
	var steps []string
	for _, s := range plan {
		steps = append(steps, s.Status+": "+s.Step)
	}
	l.Entry("plan:", strings.Join(steps, "\n"))
}

// Patch writes a patch that begins.
func (l *Log) Patch(changes map[string]protocol.FileChange) { l.Entry("patch:", patchLines(changes)) }

// Asked writes a question before its decision if a client may not show all of it. Else the transcript gets it with
// its decision.
func (l *Log) Asked(r *approval.Request) {
	if !r.Question.Cut() {
		return
	}
	l.write(func() { l.keep("open question:", whole(r)) })
}

// whole returns the words of a question, with what they may not show of its subject.
func whole(r *approval.Request) string {
	words, subject := r.Question.Message, r.Subject.Whole()
	if all := elicit.ShowCommand(subject); subject != nil && !strings.Contains(words, all) {
		words += "\n" + all
	}
	return words
}

// Decided writes the decision about a question. The page has shown the question, and shows what it was about only if no
// entry of a command or a patch follows.
func (l *Log) Decided(r *approval.Request, d approval.Decision) {
	heading, colon, words, asked := fmt.Sprintf("%s by %s", d.Decision, d.By), "", "", r.Question.Message
	about := ": " + plain.Brief(r.Question.Message)
	if r.Subject.Effect() == approval.Begins {
		if about = ""; !d.Decision.Approves() {
			about = ": " + plain.Status(r.Subject.Refusal().What)
		}
	}
	if !d.Decision.Approves() {
		colon, words = ":", d.ForModel()
	}
	if !r.Question.Cut() {
		asked = whole(r) // which is not there yet
	}
	l.write(func() {
		l.keep("question:", asked)
		l.show(strings.ReplaceAll(heading, "_", " ")+about, words)
		l.keep(heading+colon, words)
	})
}

func patchLines(changes map[string]protocol.FileChange) string {
	var lines []string
	for i, path := range slices.Sorted(maps.Keys(changes)) {
		if i == maxPaths {
			lines = append(lines, "and "+strconv.Itoa(len(changes)-i)+" more files")
			break
		}
		c := changes[path]
		kind := c.Kind()
		if c.Replaces() {
			kind = "replace"
		}
		lines = append(lines, kind+" "+Line(path))
	}
	return strings.Join(lines, "\n")
}

// Line returns a text as one line for an entry, without hidden characters, at most 2 KiB long.
func Line(s string) string { return plain.Short(s, maxLine) }

func commandLine(argv []string) string { return plain.ShortCommand(argv, maxLine) }
