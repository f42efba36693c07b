package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// SessionConfigured is the first event of a conversation; its submission id is "".
type SessionConfigured struct {
	// SessionID is the conversation's id, a UUID.
	SessionID string `json:"session_id"`
	// ThreadID is the same under its newer name; the server fills it in.
	ThreadID string `json:"thread_id,omitzero"`
	Model    string `json:"model"`
	// ModelProviderID is the name in the configuration of the provider of Model, which answers.
	ModelProviderID string `json:"model_provider_id,omitzero"`
	// ApprovalPolicy is left out if it is not one of the words, as with the granular
	// policies of today's Codex.
	ApprovalPolicy ApprovalPolicy `json:"approval_policy,omitzero"`
	// Cwd is the absolute working folder.
	Cwd string `json:"cwd,omitzero"`
	// ReasoningEffort is left out for models without one.
	ReasoningEffort ReasoningEffort `json:"reasoning_effort,omitzero"`
	// HistoryLogID is the inode of the message history, and HistoryEntryCount the number of its entries. Both are 0.
	HistoryLogID      uint64 `json:"history_log_id"`
	HistoryEntryCount int    `json:"history_entry_count"`
	// InitialMessages are the flat events of a resumed conversation's past.
	InitialMessages []json.RawMessage `json:"initial_messages,omitempty"`
	// RolloutPath is the conversation's file.
	RolloutPath string `json:"rollout_path"`
	// Access is what the conversation may do beyond the configuration of its engine, because its
	// caller asked for it. It is for the server alone, which begins no turn until it has got an approval for
	// that; until then the conversation starts nothing.
	Access Access `json:"-"`
	// WritableRoots are absolute paths of folders where commands may write, besides the working folder
	// and the temporary ones. They are for the server alone.
	WritableRoots []string `json:"-"`
}

// TaskStarted begins a turn.
type TaskStarted struct {
	// TurnID is the turn's; the server fills it in, as in all events that have it.
	TurnID string `json:"turn_id,omitzero"`
	// ModelContextWindow is in tokens; nil, written as null, when unknown.
	ModelContextWindow *int64 `json:"model_context_window"`
}

// EmptyAnswer is why the answer of a turn in which the model wrote nothing is incomplete. The
// text of such a result is empty, as in Codex; its structured content and the block for the model have the reason.
const EmptyAnswer = "it is empty"

// TaskComplete ends the turn TurnID, which was not aborted. In a turn that failed, it follows the
// [Error].
type TaskComplete struct {
	TurnID string `json:"turn_id,omitzero"`
	// LastAgentMessage is the answer; nil, written as null, without one.
	LastAgentMessage *string `json:"last_agent_message"`
	// Incomplete says why the answer is not whole, such as "it reached the model's limit of
	// output tokens". "", which is left out, is a whole answer.
	Incomplete string `json:"incomplete,omitzero"`
}

// AbortInterrupted is the only reason for which this server aborts a turn.
const AbortInterrupted = "interrupted"

// TurnAborted ends the turn TurnID, which was interrupted, or aborted by an answer to a question, for a Reason.
type TurnAborted struct {
	TurnID string `json:"turn_id,omitzero"`
	Reason string `json:"reason"`
}

// TokenUsage counts tokens.
type TokenUsage struct {
	// InputTokens are those of the request, cached ones included.
	InputTokens int64 `json:"input_tokens"`
	// CachedInputTokens are those of the input that the provider had cached.
	CachedInputTokens int64 `json:"cached_input_tokens"`
	// OutputTokens are those of the response, reasoning included.
	OutputTokens int64 `json:"output_tokens"`
	// ReasoningOutputTokens are those of the output that are reasoning.
	ReasoningOutputTokens int64 `json:"reasoning_output_tokens"`
	// TotalTokens is the sum that the provider reported.
	TotalTokens int64 `json:"total_tokens"`
}

// TokenUsageInfo is the usage of a conversation, TotalTokenUsage, and of its last model response, LastTokenUsage.
type TokenUsageInfo struct {
	TotalTokenUsage TokenUsage `json:"total_token_usage"`
	LastTokenUsage  TokenUsage `json:"last_token_usage"`
	// ModelContextWindow is in tokens; nil, written as null, when unknown.
	ModelContextWindow *int64 `json:"model_context_window"`
}

// RateLimitWindow is one of a provider's rate limits.
type RateLimitWindow struct {
	// UsedPercent is 0 to 100.
	UsedPercent float64 `json:"used_percent"`
	// WindowMinutes is the window's length, and ResetsInSeconds when it begins anew; nil, written as null, when unknown.
	WindowMinutes   *int64 `json:"window_minutes"`
	ResetsInSeconds *int64 `json:"resets_in_seconds"`
}

// RateLimits are a provider's limits, as its last response reported them.
type RateLimits struct {
	// Primary is the first window and Secondary the second one; nil, written as null, when unknown.
	Primary   *RateLimitWindow `json:"primary"`
	Secondary *RateLimitWindow `json:"secondary"`
}

// Words returns the limits as a line for a person, "" if there are none.
func (l *RateLimits) Words() string {
	var parts []string
	for _, w := range []*RateLimitWindow{l.Primary, l.Secondary} {
		if w == nil {
			continue
		}
		part := fmt.Sprintf("%g%% used", w.UsedPercent)
		if w.WindowMinutes != nil {
			part += " of " + (time.Duration(*w.WindowMinutes) * time.Minute).String()
		}
		if w.ResetsInSeconds != nil {
			part += ", resets in " + (time.Duration(*w.ResetsInSeconds) * time.Second).String()
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// TokenCount follows each model response.
type TokenCount struct {
	// Info is nil, written as null, when the provider reported no usage.
	Info *TokenUsageInfo `json:"info"`
	// RateLimits is nil, written as null, when the provider reported none.
	RateLimits *RateLimits `json:"rate_limits"`
}

// UserPlain is the kind of the user's own messages. Those that the engine adds have another.
const UserPlain = "plain"

// UserMessage is a Message of the user, in rollouts, in initial messages, and in the events
// of a desk.
type UserMessage struct {
	Message string `json:"message"`
	// Kind is left out in rollouts of programs that do not record it.
	Kind string `json:"kind,omitzero"`
	// Images are URLs, often data URLs.
	Images []string `json:"images,omitempty"`
}

// AgentMessage has a whole Message of the model.
type AgentMessage struct {
	Message string `json:"message"`
}

// AgentMessageDelta has a piece of a message as it streams: Delta is new.
type AgentMessageDelta struct {
	Delta string `json:"delta"`
}

// AgentReasoning has the Text of a whole summary of the model's reasoning.
type AgentReasoning struct {
	Text string `json:"text"`
}

// AgentReasoningDelta has a piece of a reasoning summary: Delta is new.
type AgentReasoningDelta struct {
	Delta string `json:"delta"`
}

// AgentReasoningRawContent has the Text of the reasoning itself, shown only on request.
type AgentReasoningRawContent struct {
	Text string `json:"text"`
}

// AgentReasoningRawContentDelta has a piece of the reasoning itself: Delta is new.
type AgentReasoningRawContentDelta struct {
	Delta string `json:"delta"`
}

// AgentReasoningSectionBreak separates parts of a reasoning summary.
type AgentReasoningSectionBreak struct{}

// BackgroundEvent is a remark for the user.
type BackgroundEvent struct {
	// Message is the remark. "" is for what clients learn only in the result of the turn: they do not get
	// the event.
	Message string `json:"message"`
	// Refused is what the remark is about if the engine refused to do something; otherwise
	// nil. It is not sent.
	Refused *Refused `json:"-"`
	// Allowed is what the remark is about if somebody else than a person or a rule allowed it without a question;
	// otherwise nil. It is not sent.
	Allowed *Refused `json:"-"`
	// Missing is the configured MCP server that the remark is about if its tools are missing; otherwise nil. It is not
	// sent.
	Missing *Missing `json:"-"`
	// Made is the absolute path of a file that the remark is about if the engine itself made it, otherwise "". It is
	// not sent.
	Made string `json:"-"`
	// Remark is true if the result of the turn has the remark, too. It is not sent.
	Remark bool `json:"-"`
}

// Refused is what an engine refused, or allowed, without a question.
type Refused struct {
	// Command is the argv of a command, and Cwd its folder.
	Command []string
	Cwd     string
	// Hostname is that of a host that a command did not reach; Command is nil then.
	Hostname string
	// Changes are those of a patch, by absolute path. Tool is the name of the tool if there is none of these.
	Changes map[string]FileChange
	Tool    string
	// By is who decided, in a word of package approval. "" is the engine's own policy.
	By string
	// Reason is the text that the model received, or why it was decided so.
	Reason string
	// CallID is the model's id of the call, "" if the engine does not tell.
	CallID string
}

// StreamError says that the model's stream broke and that the request is sent again. Message says what broke, and how many
// attempts were made.
type StreamError struct {
	Message string `json:"message"`
}

// ModelReroute says that another model, or another provider, answers from now on, and the Reason. What the first one
// had written of its message does not count.
type ModelReroute struct {
	// FromProvider and FromModel answered before. The provider is "", which is left out, where the
	// engine does not name it.
	FromProvider string `json:"from_provider,omitzero"`
	FromModel    string `json:"from_model"`
	// ToProvider and ToModel answer from now on.
	ToProvider string `json:"to_provider,omitzero"`
	ToModel    string `json:"to_model"`
	Reason     string `json:"reason"`
}

// Words returns a line for a person.
func (m ModelReroute) Words() string {
	name := func(provider, model string) string {
		if provider == "" {
			return model
		}
		return model + " of " + provider
	}
	return name(m.ToProvider, m.ToModel) + " answers from now on, in place of " + name(m.FromProvider, m.FromModel) +
		": " + m.Reason
}

// Error says in a Message for the user why a turn failed, or what went wrong during one.
type Error struct {
	Message string `json:"message"`
}

// ShutdownComplete is the last event of a conversation that was shut down.
type ShutdownComplete struct{}

// EventType implements [EventMsg].
func (SessionConfigured) EventType() string             { return "session_configured" }
func (TaskStarted) EventType() string                   { return "task_started" }
func (TaskComplete) EventType() string                  { return "task_complete" }
func (TurnAborted) EventType() string                   { return "turn_aborted" }
func (TokenCount) EventType() string                    { return "token_count" }
func (UserMessage) EventType() string                   { return "user_message" }
func (AgentMessage) EventType() string                  { return "agent_message" }
func (AgentMessageDelta) EventType() string             { return "agent_message_delta" }
func (AgentReasoning) EventType() string                { return "agent_reasoning" }
func (AgentReasoningDelta) EventType() string           { return "agent_reasoning_delta" }
func (AgentReasoningRawContent) EventType() string      { return "agent_reasoning_raw_content" }
func (AgentReasoningRawContentDelta) EventType() string { return "agent_reasoning_raw_content_delta" }
func (AgentReasoningSectionBreak) EventType() string    { return "agent_reasoning_section_break" }
func (BackgroundEvent) EventType() string               { return "background_event" }
func (StreamError) EventType() string                   { return "stream_error" }
func (ModelReroute) EventType() string                  { return "model_reroute" }
func (Error) EventType() string                         { return "error" }
func (ShutdownComplete) EventType() string              { return "shutdown_complete" }
