package protocol

import "encoding/json"

// ApprovalPolicy says when the user is asked before a command or patch runs.
type ApprovalPolicy string

const (
	// ApprovalUntrusted asks for every command that is not known to be safe.
	ApprovalUntrusted ApprovalPolicy = "untrusted"
	// ApprovalOnFailure runs in the sandbox and asks when the sandbox denied.
	ApprovalOnFailure ApprovalPolicy = "on-failure"
	// ApprovalOnRequest runs in the sandbox and asks when the model asks for more.
	ApprovalOnRequest ApprovalPolicy = "on-request"
	// ApprovalNever never asks.
	ApprovalNever ApprovalPolicy = "never"
)

// ApprovalPolicies lists the policies in the order of the tool schema's enum.
func ApprovalPolicies() []ApprovalPolicy {
	return []ApprovalPolicy{ApprovalUntrusted, ApprovalOnFailure, ApprovalOnRequest, ApprovalNever}
}

// SandboxMode says what a command may touch.
type SandboxMode string

const (
	// SandboxReadOnly lets commands read the disk and write nothing.
	SandboxReadOnly SandboxMode = "read-only"
	// SandboxWorkspaceWrite lets commands write below the working folder and
	// the temporary folders.
	SandboxWorkspaceWrite SandboxMode = "workspace-write"
	// SandboxDangerFullAccess switches the sandbox off.
	SandboxDangerFullAccess SandboxMode = "danger-full-access"
)

// SandboxModes lists the modes in the order of the tool schema's enum.
func SandboxModes() []SandboxMode {
	return []SandboxMode{SandboxReadOnly, SandboxWorkspaceWrite, SandboxDangerFullAccess}
}

// SandboxPolicy is a sandbox mode with its settings, as sendUserTurn,
// execOneOffCommand and rollouts carry it. The settings belong to
// [SandboxWorkspaceWrite] and are left out of the other modes.
type SandboxPolicy struct {
	// Mode is required.
	Mode SandboxMode `json:"mode"`
	// WritableRoots are absolute folders that are writable in addition to the working
	// folder.
	WritableRoots []string `json:"writable_roots,omitempty"`
	// NetworkAccess lets commands open network connections.
	NetworkAccess bool `json:"network_access,omitzero"`
	// ExcludeTmpdirEnvVar takes $TMPDIR out of the writable folders.
	ExcludeTmpdirEnvVar bool `json:"exclude_tmpdir_env_var,omitzero"`
	// ExcludeSlashTmp takes /tmp out of the writable folders.
	ExcludeSlashTmp bool `json:"exclude_slash_tmp,omitzero"`
}

// ReasoningEffort is how long a reasoning model is asked to think.
type ReasoningEffort string

// The efforts of September 2025.
const (
	EffortMinimal ReasoningEffort = "minimal"
	EffortLow     ReasoningEffort = "low"
	EffortMedium  ReasoningEffort = "medium"
	EffortHigh    ReasoningEffort = "high"
)

// ReasoningEfforts lists the efforts, least first.
func ReasoningEfforts() []ReasoningEffort {
	return []ReasoningEffort{EffortMinimal, EffortLow, EffortMedium, EffortHigh}
}

// ReasoningSummary is how a reasoning model sums its thoughts up.
type ReasoningSummary string

// The summaries of September 2025.
const (
	SummaryAuto     ReasoningSummary = "auto"
	SummaryConcise  ReasoningSummary = "concise"
	SummaryDetailed ReasoningSummary = "detailed"
	SummaryNone     ReasoningSummary = "none"
)

// ReasoningSummaries lists the summaries.
func ReasoningSummaries() []ReasoningSummary {
	return []ReasoningSummary{SummaryAuto, SummaryConcise, SummaryDetailed, SummaryNone}
}

// Config is what the caller of one conversation asked for. It is not resolved:
// the engine lays it over its own configuration (config.toml, its overrides),
// and a zero field leaves that as it is.
type Config struct {
	// Model is the model's slug.
	Model string
	// Profile names a profile of config.toml.
	Profile string
	// Cwd is the working folder; the server has made it absolute.
	Cwd string
	// ApprovalPolicy overrides approval_policy.
	ApprovalPolicy ApprovalPolicy
	// Sandbox overrides sandbox_mode.
	Sandbox SandboxMode
	// Overrides are configuration keys, dotted or nested, over config.toml;
	// the fields above win over them.
	Overrides map[string]json.RawMessage
	// FromCall says that the overrides come from the caller of a tool, mostly a model,
	// and not from the user. They may narrow the configuration's shell_environment_policy
	// but not widen it, and a writable root among them does not count as named by the
	// configuration.
	FromCall bool
	// Bounded says that callers may not choose the sandbox or the approval policy. A
	// conversation that is taken up again does then not have those of its last turn
	// where they allow more than the configuration does.
	Bounded bool
	// BaseInstructions replaces the model's instructions; empty is a value.
	BaseInstructions *string
	// DeveloperInstructions overrides developer_instructions: a message with
	// the role developer at the beginning of the history; empty is a value.
	DeveloperInstructions *string
	// CompactPrompt overrides compact_prompt: what the model is asked for when
	// the history is summarised. An empty one is the engine's own.
	CompactPrompt *string
	// Effort overrides model_reasoning_effort, and is sent to the model whatever
	// is known of it.
	Effort ReasoningEffort
	// WebSearch lets the model search the web, or does not; nil leaves it to the
	// configuration, over whose web_search = "disabled" a call does not go.
	WebSearch *bool
	// WritableRoots are absolute folders that are writable in addition to those of the
	// configuration. They are for [SandboxWorkspaceWrite] alone; a conversation with a
	// worktree has none.
	WritableRoots []string
	// IncludePlanTool offers the plan tool to the model.
	IncludePlanTool *bool
	// IncludeApplyPatchTool offers the patch tool to the model.
	IncludeApplyPatchTool *bool
	// ReadOnly leaves out everything but commands, such as MCP servers, web searches and
	// patches. Its Sandbox and ApprovalPolicy are [SandboxReadOnly] and [ApprovalNever],
	// and nothing else may widen them.
	ReadOnly bool
	// Worktree is the git worktree that the conversation has for itself, nil
	// without one. It narrows [SandboxWorkspaceWrite], whatever else says more.
	Worktree *Worktree
}

// Worktree is a folder that a conversation's commands write in alone: neither the
// temporary folders nor other writable roots are writable.
type Worktree struct {
	// Path is the worktree's top folder, absolute. The working folder is it, or
	// lies in it.
	Path string
	// ReadOnly are the places that stay read-only whatever else is writable, such
	// as the repository's git folder.
	ReadOnly []string
}
