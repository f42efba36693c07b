package turnlog

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

const (
	maxEntry = 1 << 20 // bytes of one message
	maxLine  = 2 << 10 // bytes of a text on one line
	maxPaths = 20      // paths of a patch
)

// note is entry under the store's lock.
func (l *Log) note(heading, body string) {
	l.write(func() { l.entry(heading, body) })
}

// says writes a message of the model.
func (l *Log) says(words string) {
	l.write(func() {
		l.answer = words
		l.entry("codex:", words)
	})
}

// concludes writes the last message of a turn, unless it is the one before.
func (l *Log) concludes(words string) {
	l.write(func() {
		if words != l.answer {
			l.entry("codex:", words)
		}
	})
}

// entry writes a heading on its own line, and an indented body.
func (l *Log) entry(heading, body string) {
	var b strings.Builder
	b.WriteString(valid(heading) + "\n")
	body, _ = middle(valid(body), maxEntry)
	for line := range strings.Lines(strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")) {
		b.WriteString("  " + strings.TrimSuffix(line, "\n") + "\n")
	}
	l.transcript.add(b.String())
}

// past returns the messages of the thread before this server resumed it.
func past(messages []json.RawMessage) (said []protocol.EventMsg) {
	for _, raw := range messages {
		m, err := protocol.ParseEvent(raw)
		if err != nil {
			continue
		}
		switch m.(type) {
		case protocol.UserMessage, protocol.AgentMessage, protocol.Error, protocol.ModelReroute:
			said = append(said, m)
		}
	}
	return said
}

func (l *Log) past(said []protocol.EventMsg) {
	if len(said) == 0 {
		return
	}
	l.note("=== what was said before", "")
	for _, m := range said {
		l.add(&Turn{}, "", m)
	}
	l.write(func() { l.answer = "" })
}

// refused writes what the engine refused by itself.
func (l *Log) refused(m protocol.BackgroundEvent) {
	switch r := m.Refused; {
	case m.Message != "":
		l.note("refused by the engine:", m.Message)
	case len(r.Command) > 0:
		l.note("refused by the engine: "+commandLine(r.Command), r.Reason)
	case len(r.Changes) > 0:
		l.note("refused by the engine: the patch", patchLines(r.Changes)+"\n"+r.Reason)
	default:
		l.note("refused by the engine: "+showLine(r.Tool), r.Reason)
	}
}

// planned writes a plan.
func (l *Log) planned(plan []protocol.PlanStep) {
	var steps []string
	for _, s := range plan {
		steps = append(steps, s.Status+": "+s.Step)
	}
	l.note("plan:", strings.Join(steps, "\n"))
}

func patchLines(changes map[string]protocol.FileChange) string {
	var lines []string
	for i, path := range slices.Sorted(maps.Keys(changes)) {
		if i == maxPaths {
			lines = append(lines, "and "+strconv.Itoa(len(changes)-i)+" more files")
			break
		}
		kind := "update "
		switch c := changes[path]; {
		case c.Add != nil:
			kind = "add "
		case c.Delete != nil:
			kind = "delete "
		}
		lines = append(lines, kind+showLine(path))
	}
	return strings.Join(lines, "\n")
}

// showLine returns a text as one line without hidden characters, about maxLine bytes long.
func showLine(s string) string {
	s, _ = middle(elicit.ShowText(cutLine(s)), maxLine)
	return onOneLine(s)
}

// cutLine limits the text before hidden characters are replaced.
func cutLine(s string) string { return s[:min(len(s), 4*maxLine)] }

func commandLine(argv []string) string {
	var words []string
	room := 4 * maxLine
	for _, w := range argv {
		w = w[:min(len(w), max(room, 0))]
		if room -= len(w) + 1; room < 0 {
			words = append(words, w, "…")
			break
		}
		words = append(words, w)
	}
	s, _ := middle(elicit.ShowCommand(words), maxLine)
	return strings.ReplaceAll(s, "\n", `\n`)
}
