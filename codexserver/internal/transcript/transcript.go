package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

const (
	maxEntry = 1 << 20 // bytes of one message
	maxLine  = 2 << 10 // bytes of a text on one line
	maxPaths = 20      // paths of a patch
)

// Note writes an entry: a heading, and a body or "".
func (l *Log) Note(heading, body string) {
	l.write(func() { l.entry(heading, body) })
}

// Said writes a message of the user or the model, an error, or a change of the model. It ignores other events.
func (l *Log) Said(e protocol.EventMsg) {
	switch m := e.(type) {
	case protocol.UserMessage:
		if m.Kind == "" || m.Kind == protocol.UserPlain {
			l.Note("user:", m.Message)
		}
	case protocol.AgentMessage:
		l.write(func() {
			l.answer = m.Message
			l.entry("codex:", m.Message)
		})
	case protocol.Error:
		l.Note("error:", m.Message)
	case protocol.ModelReroute:
		l.Note("model:", m.Words())
	}
}

// Concluded writes the last message of a turn, unless it is the one before.
func (l *Log) Concluded(words string) {
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
	l.transcript.write(b.String())
}

// Past writes the messages of the thread before this server resumed it.
func (l *Log) Past(messages []json.RawMessage) {
	first := true
	for _, raw := range messages {
		m, err := protocol.ParseEvent(raw)
		if err != nil {
			continue
		}
		switch m.(type) {
		case protocol.UserMessage, protocol.AgentMessage, protocol.Error, protocol.ModelReroute:
			if first {
				l.Note("=== what was said before", "")
				first = false
			}
			l.Said(m)
		}
	}
	l.write(func() { l.answer = "" })
}

// Refused writes what the engine refused by itself.
func (l *Log) Refused(m protocol.BackgroundEvent) {
	switch r := m.Refused; {
	case m.Message != "":
		l.Note("refused by the engine:", m.Message)
	case len(r.Command) > 0:
		l.Note("refused by the engine: "+commandLine(r.Command), r.Reason)
	case len(r.Changes) > 0:
		l.Note("refused by the engine: the patch", patchLines(r.Changes)+"\n"+r.Reason)
	default:
		l.Note("refused by the engine: "+showLine(r.Tool), r.Reason)
	}
}

// Planned writes a plan.
func (l *Log) Planned(plan []protocol.PlanStep) {
	var steps []string
	for _, s := range plan {
		steps = append(steps, s.Status+": "+s.Step)
	}
	l.Note("plan:", strings.Join(steps, "\n"))
}

// Patch writes the begin of a patch, and PatchEnded its end.
func (l *Log) Patch(changes map[string]protocol.FileChange) { l.Note("patch:", patchLines(changes)) }

// PatchEnded writes the end of a patch.
func (l *Log) PatchEnded(m protocol.PatchApplyEnd) {
	if m.Success {
		l.Note("the patch was applied", "")
	} else {
		l.Note("the patch was not applied:", m.Stderr)
	}
}

// Tool writes the call of a tool of an MCP server, without its arguments, which may contain secrets.
func (l *Log) Tool(call protocol.MCPInvocation) {
	l.Note("tool "+showLine(call.Tool)+" of the MCP server "+showLine(call.Server), "")
}

// ToolFailed writes that the call of a tool failed.
func (l *Log) ToolFailed(call protocol.MCPInvocation) {
	l.Note("tool "+showLine(call.Tool)+" failed", "")
}

// Image writes that the model looks at an image.
func (l *Log) Image(path string) { l.Note("image: "+showLine(path), "") }

// Asked writes a question before its decision if a client may not show all of it. Else the transcript gets it with
// its decision.
func (l *Log) Asked(r *approval.Request) {
	if !r.Question.Cut() {
		return
	}
	whole := r.Question.Message
	if exec, ok := r.Event.(protocol.ExecApprovalRequest); ok {
		if command := elicit.ShowCommand(exec.Command); !strings.Contains(whole, command) {
			whole += "\n" + command
		}
	}
	l.Note("open question:", whole)
}

// Decided writes the decision about a question.
func (l *Log) Decided(r *approval.Request, d approval.Decision) {
	l.write(func() {
		l.entry("question:", r.Question.Message)
		heading := fmt.Sprintf("%s by %s", d.Decision, d.By)
		if d.Decision.Approves() {
			l.entry(heading, "")
			return
		}
		l.entry(heading+":", d.ForModel())
	})
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
	return strings.ReplaceAll(strings.ReplaceAll(s, "\n", `\n`), "\t", `\t`)
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
