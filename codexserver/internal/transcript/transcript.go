package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

const (
	maxEntry = 1 << 20 // bytes of one message
	maxLine  = 2 << 10 // bytes of a text on one line
	maxPaths = 20      // paths of a patch
)

// Add writes what an event of the thread tells a reader. It returns the number in its thread of the command that the event
// begins, or 0.
func (l *Log) Add(e protocol.EventMsg) (command int) {
	l.write(func() { command = l.add(e) })
	return command
}

func (l *Log) add(e protocol.EventMsg) (command int) {
	switch m := e.(type) {
	case protocol.SessionConfigured:
		l.past(m.InitialMessages)
	case protocol.UserMessage:
		if m.Kind == "" || m.Kind == protocol.UserPlain {
			l.entry("user:", m.Message)
		}
	case protocol.AgentMessage:
		l.answer = m.Message
		l.entry("codex:", m.Message)
	case protocol.TaskComplete:
		if last := m.LastAgentMessage; last != nil && *last != l.answer {
			l.entry("codex:", *last)
		}
	case protocol.Error:
		l.entry("error:", m.Message)
	case protocol.ModelReroute:
		l.entry("model:", m.Words())
	case protocol.BackgroundEvent:
		if m.Refused != nil {
			l.refused(m)
		}
	case protocol.PlanUpdate:
		var steps []string
		for _, s := range m.Plan {
			steps = append(steps, s.Status+": "+s.Step)
		}
		l.entry("plan:", strings.Join(steps, "\n"))
	case protocol.ExecCommandBegin:
		return l.begin(m)
	case protocol.ExecCommandOutputDelta:
		l.print(m)
	case protocol.ExecCommandEnd:
		l.end(m)
	case protocol.PatchApplyBegin:
		l.entry("patch:", patchLines(m.Changes))
	case protocol.PatchApplyEnd:
		if m.Success {
			l.entry("the patch was applied", "")
		} else {
			l.entry("the patch was not applied:", m.Stderr)
		}
	case protocol.MCPToolCallBegin: // without its arguments, which may contain secrets
		l.entry("tool "+showLine(m.Invocation.Tool)+" of the MCP server "+showLine(m.Invocation.Server), "")
	case protocol.MCPToolCallEnd:
		if m.Result.Err != nil {
			l.entry("tool "+showLine(m.Invocation.Tool)+" failed", "")
		}
	case protocol.WebSearchEnd:
		l.entry("web search:", m.Query)
	case protocol.ViewImageToolCall:
		l.entry("image: "+showLine(m.Path), "")
	}
	return 0
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

// past writes the messages of the thread before this server resumed it.
func (l *Log) past(messages []json.RawMessage) {
	first := true
	for _, raw := range messages {
		m, err := protocol.ParseEvent(raw)
		if err != nil {
			continue
		}
		switch m.(type) {
		case protocol.UserMessage, protocol.AgentMessage, protocol.Error, protocol.ModelReroute:
			if first {
				l.entry("=== what was said before", "")
				first = false
			}
			l.add(m)
		}
	}
	l.answer = ""
}

// refused writes what the engine refused by itself.
func (l *Log) refused(m protocol.BackgroundEvent) {
	switch r := m.Refused; {
	case m.Message != "":
		l.entry("refused by the engine:", m.Message)
	case len(r.Command) > 0:
		l.entry("refused by the engine: "+commandLine(r.Command), r.Reason)
	case len(r.Changes) > 0:
		l.entry("refused by the engine: the patch", patchLines(r.Changes)+"\n"+r.Reason)
	default:
		l.entry("refused by the engine: "+showLine(r.Tool), r.Reason)
	}
}

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
	l.write(func() { l.entry("open question:", whole) })
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
		lines = append(lines, changes[path].Kind()+" "+showLine(path))
	}
	return strings.Join(lines, "\n")
}

// showLine returns a text as one line without hidden characters, at most maxLine bytes long, and commandLine a command.
func showLine(s string) string { return show.Text(s, maxLine) }

func commandLine(argv []string) string { return show.Line(argv, maxLine) }
