package tools

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// Activity returns a few words for a person about what the turn does after an event. It
// returns "" for an event that does not change that.
func Activity(m protocol.EventMsg) string {
	switch m := m.(type) {
	case protocol.TaskStarted:
		return "thinking"
	case protocol.ExecApprovalRequest, protocol.PatchApprovalRequest:
		return "waiting for approval"
	case protocol.ExecCommandBegin:
		return "running " + strings.Join(m.Command, " ")
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

// subject returns the subject of a question: the command, or a description.
func subject(r *approval.Request) string {
	switch e := r.Event.(type) {
	case protocol.ExecApprovalRequest:
		return "`" + elicit.ShowCommand(e.Command) + "`"
	case protocol.PatchApprovalRequest:
		return "changes to files"
	}
	return "a request"
}
