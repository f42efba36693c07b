package protocol

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ApprovalPolicy says when a person is asked before a command or a patch runs.
type ApprovalPolicy string

const (
	// ApprovalUntrusted asks for every command that is not known to be safe.
	ApprovalUntrusted ApprovalPolicy = "untrusted"
	// ApprovalOnFailure runs in the sandbox, and asks after the sandbox has stopped a
	// command.
	ApprovalOnFailure ApprovalPolicy = "on-failure"
	// ApprovalOnRequest runs in the sandbox, and asks when the model wants to leave it.
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

// SandboxPolicy is a sandbox mode with its settings, as rollouts carry it. The settings belong to
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

// Config is the configuration that the caller of a conversation asks for. It overrides the
// engine's own configuration, config.toml and its overrides, such as ApprovalPolicy, Sandbox and Model, a slug.
// IncludeApplyPatchTool offers that tool. A zero field changes nothing. The tag key is that of
// [Choices].
type Config struct {
	Model string `key:"model"`
	// Profile names a profile of config.toml.
	Profile string `key:"profile"`
	// Cwd is the working folder; the server has made it absolute.
	Cwd            string
	ApprovalPolicy ApprovalPolicy `key:"approval_policy"`
	Sandbox        SandboxMode    `key:"sandbox_mode"`
	// Overrides are configuration keys, dotted or nested, that win over config.toml. The
	// other fields win over them.
	Overrides Overrides
	Choices
	// Note is told to the model of a new conversation after the developer instructions, see [Config.Noted].
	Note                  string
	IncludeApplyPatchTool *bool `key:"include_apply_patch_tool"`
	// FromCall is true when the overrides come from the caller of a tool, mostly a model,
	// and not from the user. A writable root among them does not count as one of the
	// user's, who alone can make the home and system folders writable.
	FromCall bool
	// Keep reports whether a resumed conversation may keep what its last turn had beyond the
	// configuration. Nil keeps nothing. If it returns false, the conversation has no more than
	// the configuration and the other fields give.
	Keep func(Access) bool
	// Continues is true when a turn continues that began in a process which has ended. No
	// caller chooses then: its policies are those of the turn, as far as the configuration
	// allows no less, and its model is that of the turn.
	Continues bool
	// ReadOnly leaves the model only commands: no MCP servers, web searches or patches.
	// The conversation has [SandboxReadOnly] and [ApprovalNever], and nothing can widen
	// them.
	ReadOnly bool
}

// Noted is [Config.Chosen] with the note after the developer instructions, which are those of the configuration unless
// a call chooses others.
func (c *Config) Noted(configured string) Choices {
	choices := c.Chosen()
	if c.Note == "" {
		return choices
	}
	if chosen := choices.DeveloperInstructions; chosen != nil {
		configured = *chosen
	}
	both := strings.TrimSpace(configured + "\n\n" + c.Note)
	choices.DeveloperInstructions = &both
	return choices
}

// Overrides are keys of config.toml. Their values are tables, which are map[string]any, and []any, string, bool, int64,
// float64 and nil, which sets nothing.
type Overrides map[string]any

// UnmarshalJSON implements [json.Unmarshaler]. An integer that an int64 has stays exact.
func (o *Overrides) UnmarshalJSON(b []byte) error {
	exact := json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, to *any) error {
		if d.PeekKind() != '0' {
			return errors.ErrUnsupported
		}
		number, err := d.ReadValue()
		if err != nil {
			return err
		}
		if n, err := strconv.ParseInt(string(number), 10, 64); err == nil {
			*to = n
			return nil
		}
		*to, err = strconv.ParseFloat(string(number), 64)
		return err
	}))
	return json.Unmarshal(b, (*map[string]any)(o), exact)
}
