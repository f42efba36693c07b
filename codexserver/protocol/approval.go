package protocol

// ExecApprovalRequest asks whether a command may run. It is the event that
// every listener sees and what the engine hands to its host.
type ExecApprovalRequest struct {
	// CallID is the model's id of the call.
	CallID string `json:"call_id"`
	// TurnID is the turn's.
	TurnID string `json:"turn_id,omitzero"`
	// Command is the argv.
	Command []string `json:"command"`
	// Cwd is the absolute folder it would run in.
	Cwd string `json:"cwd"`
	// Reason is the model's or the engine's, left out without one.
	Reason string `json:"reason,omitzero"`
	// Subject is who asks when it is not Codex itself, such as a sub-agent. It
	// is not part of the event.
	Subject string `json:"-"`
	// FromEngine is true when Reason is the engine's and not the model's. It is
	// not part of the event.
	FromEngine bool `json:"-"`
	// Safe is true when the command is known to be harmless. It is not part of
	// the event.
	Safe bool `json:"-"`
	// LeavesSandbox is true when an approved command would run outside the
	// sandbox of a sandboxed conversation. It is not part of the event.
	LeavesSandbox bool `json:"-"`
	// Once is true when the same words may run something else the next time,
	// because a program that they name lies where commands may write, or is not
	// found. No rule allows the command then, and no approval of it lasts for the
	// session. It is not part of the event.
	Once bool `json:"-"`
	// Program is where that program lies, "" when it is not found. It is not part
	// of the event.
	Program string `json:"-"`
	// Judged is the command as rules are to see it, for an engine that puts a
	// shell of its own around the model's; nil means Command. It is not part of
	// the event.
	Judged []string `json:"-"`
}

// PatchApprovalRequest asks whether a patch may be applied.
type PatchApprovalRequest struct {
	// CallID is the model's id of the call.
	CallID string `json:"call_id"`
	// TurnID is the turn's.
	TurnID string `json:"turn_id,omitzero"`
	// Changes is the patch by absolute path: the place that is written, symbolic
	// links resolved.
	Changes map[string]FileChange `json:"changes"`
	// Links has, for each path of Changes and each MovePath that the patch names by
	// way of symbolic links, the path as the patch names it. It is not part of the
	// event.
	Links map[string]string `json:"-"`
	// Reason is the model's or the engine's, left out without one.
	Reason string `json:"reason,omitzero"`
	// GrantRoot is a folder below which later patches would not be asked for.
	GrantRoot string `json:"grant_root,omitzero"`
	// Subject is who asks when it is not Codex itself, such as a sub-agent. It
	// is not part of the event.
	Subject string `json:"-"`
	// Cwd is the conversation's folder; changes outside of it are pointed out.
	// It is not part of the event.
	Cwd string `json:"-"`
	// Once is true when an approval for the session would be worth no more than
	// one for this once. It is not part of the event.
	Once bool `json:"-"`
	// Notes are sentences of the server's own about the changes. They are not part
	// of the event.
	Notes []string `json:"-"`
}

// EventType implements [EventMsg].
func (ExecApprovalRequest) EventType() string { return "exec_approval_request" }

// EventType implements [EventMsg].
func (PatchApprovalRequest) EventType() string { return "apply_patch_approval_request" }
