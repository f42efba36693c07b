package mcptool

import (
	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Activity returns one line for a person about what the turn does after an event, at most
// maxBrief characters. It returns "" for an event that does not change that.
func Activity(m protocol.EventMsg) string { return elicit.OneLine(activity(m), maxBrief) }

func activity(m protocol.EventMsg) string {
	switch m := m.(type) {
	case protocol.TaskStarted:
		return "thinking"
	case protocol.ExecApprovalRequest, protocol.PatchApprovalRequest:
		return "waiting for approval"
	case protocol.ExecCommandBegin:
		return "running " + elicit.ShowCommand(first(m.Command))
	case protocol.ExecCommandEnd, protocol.PatchApplyEnd:
		return "thinking"
	case protocol.PatchApplyBegin:
		return "changing files"
	case protocol.MCPToolCallBegin:
		return "calling " + m.Invocation.Server + "/" + m.Invocation.Tool
	case protocol.BackgroundEvent:
		return m.Message
	case protocol.AgentMessage:
		return m.Message
	}
	return ""
}

// first returns the first words of a command, as far as a status line may show them.
func first(argv []string) []string {
	var words []string
	for room := 4 * maxBrief; len(argv) > 0 && room > 0; argv = argv[1:] {
		word := argv[0][:min(len(argv[0]), room)]
		words = append(words, word)
		room -= len(word) + 1
	}
	return words
}

// subject returns the subject of a question: the command, or a description.
func subject(r *approval.Request) string {
	switch e := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		return "`" + elicit.ShowCommand(first(e.Command)) + "`"
	case protocol.PatchApprovalRequest:
		return "changes to files"
	}
	return "a request"
}
