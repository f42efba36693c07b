package workerlink

import "github.com/codexmcp/codexmcp/codexserver/protocol"

// Step is what an event of a turn means for the gateway, without texts.
type Step struct {
	// What happened.
	What What `json:"what,omitzero"`
	// Call is the id of a command, a tool or a patch.
	Call string `json:"call,omitzero"`
	// Exit is of a command.
	Exit int `json:"exit,omitzero"`
	// Used is what the thread has used, of a count.
	Used protocol.TokenUsage `json:"used,omitzero"`
}

// What is what happened in a turn.
type What string

// What happens.
const (
	Started   What = "started"
	Counted   What = "counted" // tokens
	Retried   What = "retried" // a request to the model, after an error
	Failed    What = "failed"
	Aborted   What = "aborted"
	Completed What = "completed"
	Runs      What = "runs"   // a command
	Ran       What = "ran"    // a command
	Calls     What = "calls"  // a tool, or a patch is applied
	Called    What = "called" // a tool, or a patch was applied
)

// effect reports whether something begins or ends that must not be interrupted.
func (w What) effect() bool { return w == Runs || w == Ran || w == Calls || w == Called }

// StepOf returns what an event means, or false for one that the gateway does not need.
func StepOf(m protocol.EventMsg) (s Step, needed bool) {
	switch m := m.(type) {
	case protocol.TaskStarted:
		s.What = Started
	case protocol.TokenCount:
		if m.Info == nil {
			return s, false // the limits of an account
		}
		s.What, s.Used = Counted, m.Info.TotalTokenUsage
	case protocol.StreamError:
		s.What = Retried
	case protocol.Error:
		s.What = Failed
	case protocol.TurnAborted:
		s.What = Aborted
	case protocol.TaskComplete:
		s.What = Completed
	case protocol.ExecCommandBegin:
		s.What, s.Call = Runs, m.CallID
	case protocol.ExecCommandEnd:
		s.What, s.Call, s.Exit = Ran, m.CallID, m.ExitCode
	case protocol.MCPToolCallBegin:
		s.What, s.Call = Calls, m.CallID
	case protocol.MCPToolCallEnd:
		s.What, s.Call = Called, m.CallID
	case protocol.PatchApplyBegin:
		s.What, s.Call = Calls, m.CallID
	case protocol.PatchApplyEnd:
		s.What, s.Call = Called, m.CallID
	}
	s.Call = oneLine(s.Call, maxWord)
	return s, s.What != ""
}
