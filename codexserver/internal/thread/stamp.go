package thread

import (
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/uuid"
)

// newTurnID returns a unique id. If the system has no random bytes it returns "", and the
// events have no id.
func newTurnID() string {
	id, err := uuid.NewV7()
	if err != nil {
		return ""
	}
	return id.String()
}

// stamp sets the ids of the thread and the turn in events that have them. It keeps an id
// that an engine has set.
func stamp(m protocol.EventMsg, turn string) protocol.EventMsg {
	set := func(id *string) {
		if *id == "" {
			*id = turn
		}
	}
	switch m := m.(type) {
	case protocol.SessionConfigured:
		m.ThreadID = m.SessionID
		return m
	case protocol.TaskStarted:
		set(&m.TurnID)
		return m
	case protocol.TaskComplete:
		set(&m.TurnID)
		return m
	case protocol.TurnAborted:
		set(&m.TurnID)
		return m
	case protocol.ExecApprovalRequest:
		set(&m.TurnID)
		return m
	case protocol.PatchApprovalRequest:
		set(&m.TurnID)
		return m
	case protocol.ExecCommandBegin:
		set(&m.TurnID)
		return m
	case protocol.ExecCommandEnd:
		set(&m.TurnID)
		return m
	case protocol.PatchApplyBegin:
		set(&m.TurnID)
		return m
	case protocol.PatchApplyEnd:
		set(&m.TurnID)
		return m
	}
	return m
}
