package apptypes

import (
	"encoding/json"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Note has the params of every notification that is read. Which members it has depends on the method.
type Note struct {
	Action         json.RawMessage `json:"action,omitzero"` // a ReviewAction
	CompletedAtMs  int64           `json:"completedAtMs,omitzero"`
	DecisionSource json.RawMessage `json:"decisionSource,omitzero"`
	Delta          string          `json:"delta,omitzero"`
	DeltaBase64    []byte          `json:"deltaBase64,omitzero"`
	Details        string          `json:"details,omitzero"`
	Diff           string          `json:"diff,omitzero"`
	Error          json.RawMessage `json:"error,omitzero"` // a TurnError; of the start of an MCP server a text
	Explanation    *string         `json:"explanation,omitzero"`
	FailureReason  string          `json:"failureReason,omitzero"`
	FromModel      string          `json:"fromModel,omitzero"`
	Goal           *Goal           `json:"goal,omitzero"`
	Item           *Item           `json:"item,omitzero"`
	ItemID         string          `json:"itemId,omitzero"`
	Message        string          `json:"message,omitzero"`
	Name           string          `json:"name,omitzero"`
	Plan           []PlanStep      `json:"plan,omitzero"`
	ProcessID      string          `json:"processId,omitzero"`
	RateLimits     *RateLimits     `json:"rateLimits,omitzero"`
	Reason         string          `json:"reason,omitzero"`
	Review         json.RawMessage `json:"review,omitzero"` // a Review
	ReviewID       json.RawMessage `json:"reviewId,omitzero"`
	Run            json.RawMessage `json:"run,omitzero"` // a HookRun
	StartedAtMs    int64           `json:"startedAtMs,omitzero"`
	Status         string          `json:"status,omitzero"` // one of MCPServerStartupState…
	Stream         string          `json:"stream,omitzero"`
	Summary        string          `json:"summary,omitzero"`
	TargetItemID   json.RawMessage `json:"targetItemId,omitzero"`
	ThreadID       string          `json:"threadId,omitzero"`
	ToModel        string          `json:"toModel,omitzero"`
	TokenUsage     *TokenUsage     `json:"tokenUsage,omitzero"`
	Turn           *Turn           `json:"turn,omitzero"`
	TurnID         string          `json:"turnId,omitzero"`
	WillRetry      bool            `json:"willRetry,omitzero"`
}

// Review is what Codex's reviewer, a model, decided, and why. Status is one of GuardianApprovalReviewStatus…. Codex marks
// this form, and that of [ReviewAction], as unstable: [Note] has them as they came.
type Review struct {
	Rationale string `json:"rationale,omitzero"`
	Status    string `json:"status"`
}

// ReviewAction is what the reviewer decides about. Type is one of GuardianApprovalReviewAction…, and says which members
// it has.
type ReviewAction struct {
	Argv        []string        `json:"argv,omitzero"`
	Command     string          `json:"command,omitzero"`
	Cwd         string          `json:"cwd,omitzero"`
	Files       []string        `json:"files,omitzero"`
	Host        string          `json:"host,omitzero"`
	Permissions json.RawMessage `json:"permissions,omitzero"`
	ProcessID   string          `json:"processId,omitzero"`
	Protocol    string          `json:"protocol,omitzero"`
	Server      string          `json:"server,omitzero"`
	Stdin       string          `json:"stdin,omitzero"`
	ToolName    string          `json:"toolName,omitzero"`
	Type        string          `json:"type"`
}

// HookRun is a run of a hook of the user's. ID ends with the id of the call that it is about. Status is one of
// HookRunStatus…, and EventName one of HookEventName….
type HookRun struct {
	EventName string `json:"eventName"`
	ID        string `json:"id"`
	Status    string `json:"status"`
}

// Item is what happens in a turn: a message, a command, a patch, the call of a tool. Type is one of ThreadItem…,
// and says which members it has. Of another type only Type and ID are read, because its members may have another
// meaning. Content is a list of strings, or of [Input] in a message of the user.
type Item struct {
	AgentPath         string          `json:"agentPath,omitzero"`
	AgentThreadID     string          `json:"agentThreadId,omitzero"`
	AggregatedOutput  string          `json:"aggregatedOutput,omitzero"`
	Arguments         json.RawMessage `json:"arguments,omitzero"`
	Changes           []FileUpdate    `json:"changes,omitzero"`
	Command           string          `json:"command,omitzero"`
	CommandActions    []CommandAction `json:"commandActions,omitzero"`
	Content           json.RawMessage `json:"content,omitzero"`
	Cwd               string          `json:"cwd,omitzero"`
	DurationMs        int64           `json:"durationMs,omitzero"`
	Error             *ToolError      `json:"error,omitzero"`
	ExitCode          *int64          `json:"exitCode,omitzero"`
	ID                string          `json:"id"`
	Path              string          `json:"path,omitzero"`
	Phase             string          `json:"phase,omitzero"`
	ProcessID         string          `json:"processId,omitzero"`
	Query             string          `json:"query,omitzero"`
	ReceiverThreadIDs []string        `json:"receiverThreadIds,omitzero"`
	Result            json.RawMessage `json:"result,omitzero"`
	SavedPath         string          `json:"savedPath,omitzero"`
	SenderThreadID    string          `json:"senderThreadId,omitzero"`
	Server            string          `json:"server,omitzero"`
	Status            string          `json:"status,omitzero"`
	Summary           []string        `json:"summary,omitzero"`
	Text              string          `json:"text,omitzero"`
	Tool              string          `json:"tool,omitzero"`
	Type              string          `json:"type"`
}

// itemTypes are the types of items that are read whole.
var itemTypes = []string{
	ThreadItemAgentMessage, ThreadItemCollabAgentToolCall, ThreadItemCommandExecution, ThreadItemFileChange,
	ThreadItemImageGeneration, ThreadItemImageView,
	ThreadItemMCPToolCall, ThreadItemReasoning, ThreadItemSubAgentActivity, ThreadItemUserMessage, ThreadItemWebSearch,
}

// UnmarshalJSON reads an item.
func (it *Item) UnmarshalJSON(b []byte) error {
	var head struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}
	if err := jsonv2.Unmarshal(b, &head); err != nil {
		return err
	}
	if *it = (Item{ID: head.ID, Type: head.Type}); !slices.Contains(itemTypes, it.Type) {
		return nil
	}
	type plain Item
	return jsonv2.Unmarshal(b, (*plain)(it))
}

// FileUpdate is the change of a file. Diff is the content of a file that is added or deleted, otherwise a
// unified diff.
type FileUpdate struct {
	Diff string   `json:"diff"`
	Kind FileKind `json:"kind"`
	Path string   `json:"path"`

	// Unknown are the members that this type does not have, as an object.
	Unknown jsontext.Value `json:",embed"`
}

// FileKind is how a patch changes a file: one of PatchChangeKind….
type FileKind struct {
	MovePath *string `json:"move_path,omitzero"`
	Type     string  `json:"type"`

	// Unknown are the members that this type does not have, as an object.
	Unknown jsontext.Value `json:",embed"`
}

// CommandAction is what Codex takes a part of a command for: it reads, lists, searches, or is unknown.
type CommandAction struct {
	Command string  `json:"command"`
	Name    *string `json:"name,omitzero"`
	Path    *string `json:"path,omitzero"`
	Query   *string `json:"query,omitzero"`
	Type    string  `json:"type"`
}

// ToolError is why the call of a tool failed.
type ToolError struct {
	Message string `json:"message"`
}

// PlanStep is a step of the model's plan. Status is one of TurnPlanStepStatus….
type PlanStep struct {
	Status string `json:"status"`
	Step   string `json:"step"`
}

// TokenUsage is how many tokens the last response and the whole thread took.
type TokenUsage struct {
	Last               TokenCount `json:"last"`
	ModelContextWindow *int64     `json:"modelContextWindow,omitzero"`
	Total              TokenCount `json:"total"`
}

// TokenCount counts tokens.
type TokenCount struct {
	InputTokens           int64 `json:"inputTokens"`
	CachedInputTokens     int64 `json:"cachedInputTokens"`
	OutputTokens          int64 `json:"outputTokens"`
	ReasoningOutputTokens int64 `json:"reasoningOutputTokens"`
	TotalTokens           int64 `json:"totalTokens"`
}

// RateLimits is how much of an account's limits is used.
type RateLimits struct {
	Primary   *RateWindow `json:"primary,omitzero"`
	Secondary *RateWindow `json:"secondary,omitzero"`
}

// RateWindow is one of the limits of an account. ResetsAt is in seconds since 1970.
type RateWindow struct {
	ResetsAt           *int64 `json:"resetsAt,omitzero"`
	UsedPercent        int64  `json:"usedPercent"`
	WindowDurationMins *int64 `json:"windowDurationMins,omitzero"`
}

// TurnError is why a turn failed. CodexErrorInfo is one of CodexErrorInfo…, or an object with one as its only
// member.
type TurnError struct {
	AdditionalDetails string          `json:"additionalDetails,omitzero"`
	CodexErrorInfo    json.RawMessage `json:"codexErrorInfo,omitzero"`
	Message           string          `json:"message"`
}
