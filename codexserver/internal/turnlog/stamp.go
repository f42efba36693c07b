package turnlog

import (
	"cmp"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Stamp sets the ids of the thread and the turn in events that have them. It keeps an id
// that an engine has set.
func Stamp(m protocol.EventMsg, turn string) protocol.EventMsg {
	switch m := m.(type) {
	case protocol.SessionConfigured:
		m.ThreadID = m.SessionID
		return m
	case protocol.TaskStarted:
		m.TurnID = cmp.Or(m.TurnID, turn)
		return m
	case protocol.TaskComplete:
		m.TurnID = cmp.Or(m.TurnID, turn)
		return m
	case protocol.TurnAborted:
		m.TurnID = cmp.Or(m.TurnID, turn)
		return m
	case protocol.ExecApprovalRequest:
		m.TurnID = cmp.Or(m.TurnID, turn)
		return m
	case protocol.PatchApprovalRequest:
		m.TurnID = cmp.Or(m.TurnID, turn)
		return m
	case protocol.ExecCommandBegin:
		m.TurnID = cmp.Or(m.TurnID, turn)
		return m
	case protocol.ExecCommandEnd:
		m.TurnID = cmp.Or(m.TurnID, turn)
		return m
	case protocol.PatchApplyBegin:
		m.TurnID = cmp.Or(m.TurnID, turn)
		return m
	case protocol.PatchApplyEnd:
		m.TurnID = cmp.Or(m.TurnID, turn)
		return m
	}
	return m
}
