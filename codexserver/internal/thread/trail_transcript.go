package thread

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

// entry writes a heading on its own line, and an indented body.
func (t *Trail) entry(heading, body string) {
	var b strings.Builder
	b.WriteString(valid(heading) + "\n")
	body, _ = middle(valid(body), maxEntry)
	for line := range strings.Lines(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body)) {
		b.WriteString("  " + strings.TrimSuffix(line, "\n") + "\n")
	}
	t.transcript.add(b.String())
}

func (t *Trail) event(m protocol.EventMsg) {
	switch m := m.(type) {
	case protocol.UserMessage:
		if m.Kind == "" || m.Kind == protocol.UserPlain {
			t.entry("user:", m.Message)
		}
	case protocol.AgentMessage:
		t.answer = m.Message
		t.entry("codex:", m.Message)
	case protocol.TaskComplete:
		if last := m.LastAgentMessage; last != nil && *last != t.answer {
			t.entry("codex:", *last)
		}
	case protocol.Error:
		t.entry("error:", m.Message)
	case protocol.ExecCommandBegin:
		t.beginCommand(m)
	case protocol.ExecCommandOutputDelta:
		t.print(m)
	case protocol.ExecCommandEnd:
		t.endCommand(m)
	case protocol.PatchApplyBegin:
		t.entry("patch:", patchLines(m.Changes))
	case protocol.PatchApplyEnd:
		if m.Success {
			t.entry("the patch was applied", "")
		} else {
			t.entry("the patch was not applied:", m.Stderr)
		}
	case protocol.BackgroundEvent:
		if m.Refused != nil {
			t.entry("refused by the engine:", m.Message)
		}
	case protocol.PlanUpdate:
		var steps []string
		for _, s := range m.Plan {
			steps = append(steps, s.Status+": "+s.Step)
		}
		t.entry("plan:", strings.Join(steps, "\n"))
	case protocol.MCPToolCallBegin: // without its arguments, which may contain secrets
		t.entry("tool "+showLine(m.Invocation.Tool)+" of the MCP server "+showLine(m.Invocation.Server), "")
	case protocol.MCPToolCallEnd:
		if m.Result.Err != nil {
			t.entry("tool "+showLine(m.Invocation.Tool)+" failed", "")
		}
	case protocol.WebSearchEnd:
		t.entry("web search:", m.Query)
	case protocol.ViewImageToolCall:
		t.entry("image: "+showLine(m.Path), "")
	}
}

// past returns the messages of the thread before this server resumed it.
func past(messages []json.RawMessage) (said []protocol.EventMsg) {
	for _, raw := range messages {
		m, err := protocol.ParseEvent(raw)
		if err != nil {
			continue
		}
		switch m.(type) {
		case protocol.UserMessage, protocol.AgentMessage, protocol.Error:
			said = append(said, m)
		}
	}
	return said
}

func (t *Trail) past(said []protocol.EventMsg) {
	if len(said) == 0 {
		return
	}
	t.entry("=== what was said before", "")
	for _, m := range said {
		t.event(m)
	}
	t.answer = ""
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
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(s)
}

// cutLine limits the text before hidden characters are replaced.
func cutLine(s string) string { return s[:min(len(s), 4*maxLine)] }

func showCommand(argv []string) string {
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
