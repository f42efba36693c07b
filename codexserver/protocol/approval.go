package protocol

// ExecApprovalRequest asks whether a Command, an argv, may run for the call CallID of the turn TurnID. An engine passes
// it to its host, and listeners receive it as an event.
type ExecApprovalRequest struct {
	CallID  string   `json:"call_id"`
	TurnID  string   `json:"turn_id,omitzero"`
	Command []string `json:"command"`
	// Cwd is the absolute path of the folder in which it would run.
	Cwd string `json:"cwd"`
	// Reason is the model's or the engine's, left out without one.
	Reason string `json:"reason,omitzero"`
	// Subject is who asks when it is not Codex itself, such as a sub-agent. It
	// is not part of the event.
	Subject string `json:"-"`
	// FromEngine is true when Reason is the engine's and not the model's. It is
	// not part of the event.
	FromEngine bool `json:"-"`
	// LeavesSandbox is true when an approved command would run outside the
	// sandbox of a sandboxed conversation. It is not part of the event.
	LeavesSandbox bool `json:"-"`
	// NoSandbox is true when nothing confines the commands of the conversation. It is not
	// part of the event.
	NoSandbox bool `json:"-"`
	// Network is true when Command is no command but stands for access to a host. It is not part of the event.
	Network bool `json:"-"`
	// Reads is true when the engine itself does what Command says, and that only reads files outside of the
	// conversation's folder. It is not part of the event.
	Reads bool `json:"-"`
	// Confinable is true when the engine runs the command in the sandbox if the approval
	// demands it with Confined in an elicit.Outcome. Otherwise a rule allows the command only
	// if it also allows it outside. It is not part of the event.
	Confinable bool `json:"-"`
	// Once is true when no approval of the command lasts for the session. Where one does, the
	// engine lets the same command run again only inside the sandbox, if LeavesSandbox is true.
	// It is not part of the event.
	Once bool `json:"-"`
	// Human is true when the engine takes only a decision that a person makes now. Then no rule
	// allows the command, and an approval that no person gave does not count. It is not part of the
	// event.
	Human bool `json:"-"`
	// Notes are the engine's sentences about the command. They are not part of the event.
	Notes []string `json:"-"`
	// Tip is a sentence of the engine's about how less would be asked for, which brief questions leave out. It is not part
	// of the event.
	Tip string `json:"-"`
}

// PatchApprovalRequest asks whether the patch of the call CallID of the turn TurnID may be applied.
type PatchApprovalRequest struct {
	CallID string `json:"call_id"`
	TurnID string `json:"turn_id,omitzero"`
	// Changes is the patch by absolute path, with symbolic links resolved.
	Changes map[string]FileChange `json:"changes"`
	// Links has an entry for each path in Changes and each MovePath that the patch names
	// through symbolic links: the path as the patch names it. It is not part of the event.
	Links map[string]string `json:"-"`
	// Reason is the model's or the engine's, left out without one.
	Reason string `json:"reason,omitzero"`
	// GrantRoot is a folder. If the patch is approved for the session, later patches below
	// it need no approval.
	GrantRoot string `json:"grant_root,omitzero"`
	// Subject is who asks when it is not Codex itself, such as a sub-agent. It
	// is not part of the event.
	Subject string `json:"-"`
	// Cwd is the conversation's folder. The question marks changes outside of it. It is
	// not part of the event.
	Cwd string `json:"-"`
	// Once is true when the patch cannot be approved for the session. It is not part of
	// the event.
	Once bool `json:"-"`
	// Notes are the engine's sentences about the changes. They are not part of the event.
	Notes []string `json:"-"`
	// Why has an entry for each path in Changes of which the engine says why it deserves
	// attention, such as "other programs run it". The question lists such files first. It is not part of the event.
	Why map[string]string `json:"-"`
}

// EventType implements [EventMsg].
func (ExecApprovalRequest) EventType() string { return "exec_approval_request" }

// EventType implements [EventMsg].
func (PatchApprovalRequest) EventType() string { return "apply_patch_approval_request" }
