package protocol

// ExecApprovalRequest says that it is asked whether a Command, an argv, may run for the call CallID of the turn TurnID.
type ExecApprovalRequest struct {
	CallID  string   `json:"call_id"`
	TurnID  string   `json:"turn_id,omitzero"`
	Command []string `json:"command"`
	// Cwd is the absolute path of the folder in which it would run.
	Cwd string `json:"cwd"`
	// Reason is the model's or the engine's, left out without one.
	Reason string `json:"reason,omitzero"`
}

// PatchApprovalRequest says that it is asked whether the patch of the call CallID of the turn TurnID may be applied.
type PatchApprovalRequest struct {
	CallID string `json:"call_id"`
	TurnID string `json:"turn_id,omitzero"`
	// Changes is the patch by absolute path, with symbolic links resolved.
	Changes map[string]FileChange `json:"changes"`
	// Reason is the model's or the engine's, left out without one.
	Reason string `json:"reason,omitzero"`
	// GrantRoot is a folder. If the patch is approved for the session, later patches below
	// it need no approval.
	GrantRoot string `json:"grant_root,omitzero"`
}

// EventType implements [EventMsg].
func (ExecApprovalRequest) EventType() string { return "exec_approval_request" }

// EventType implements [EventMsg].
func (PatchApprovalRequest) EventType() string { return "apply_patch_approval_request" }
