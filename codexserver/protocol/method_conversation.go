package protocol

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json"
)

// NewConversationParams are the params of newConversation, and the overrides of
// resumeConversation. Every member may be absent or null.
type NewConversationParams struct {
	Model                 string                        `json:"model,omitzero"`
	Profile               string                        `json:"profile,omitzero"`
	Cwd                   string                        `json:"cwd,omitzero"`
	ApprovalPolicy        ApprovalPolicy                `json:"approvalPolicy,omitzero"`
	Sandbox               SandboxMode                   `json:"sandbox,omitzero"`
	Config                map[string]stdjson.RawMessage `json:"config,omitzero"`
	BaseInstructions      *string                       `json:"baseInstructions,omitzero"`
	IncludePlanTool       *bool                         `json:"includePlanTool,omitzero"`
	IncludeApplyPatchTool *bool                         `json:"includeApplyPatchTool,omitzero"`
}

// NewConversationResult is the result of newConversation.
type NewConversationResult struct {
	ConversationID  string          `json:"conversationId"`
	Model           string          `json:"model"`
	ReasoningEffort ReasoningEffort `json:"reasoningEffort,omitzero"`
	RolloutPath     string          `json:"rolloutPath"`
}

// ResumeConversationParams are the params of resumeConversation.
type ResumeConversationParams struct {
	Path      string                 `json:"path"`
	Overrides *NewConversationParams `json:"overrides,omitzero"`
}

// ResumeConversationResult is the result of resumeConversation.
type ResumeConversationResult struct {
	ConversationID string `json:"conversationId"`
	Model          string `json:"model"`
	// InitialMessages are the flat events of the past.
	InitialMessages []stdjson.RawMessage `json:"initialMessages,omitempty"`
}

// ListConversationsParams are the params of listConversations.
type ListConversationsParams struct {
	// PageSize is 25 by default; 0 gives no items.
	PageSize *int `json:"pageSize,omitzero"`
	// Cursor is the nextCursor of the page before; one that cannot be read
	// means the start.
	Cursor string `json:"cursor,omitzero"`
}

// ConversationSummary is one conversation of a list.
type ConversationSummary struct {
	ConversationID string `json:"conversationId"`
	Path           string `json:"path"`
	// Preview is the user's first message.
	Preview   string  `json:"preview"`
	Timestamp *string `json:"timestamp,omitzero"`
}

// ListConversationsResult is the result of listConversations, newest first.
type ListConversationsResult struct {
	Items      []ConversationSummary `json:"items"`
	NextCursor *string               `json:"nextCursor,omitzero"`
}

// ArchiveConversationParams are the params of archiveConversation.
type ArchiveConversationParams struct {
	ConversationID string `json:"conversationId"`
	RolloutPath    string `json:"rolloutPath"`
}

// AddConversationListenerParams are the params of addConversationListener.
type AddConversationListenerParams struct {
	ConversationID string `json:"conversationId"`
}

// AddConversationListenerResult is the result of addConversationListener.
type AddConversationListenerResult struct {
	SubscriptionID string `json:"subscriptionId"`
}

// RemoveConversationListenerParams are the params of removeConversationListener.
type RemoveConversationListenerParams struct {
	SubscriptionID string `json:"subscriptionId"`
}

// SendUserMessageParams are the params of sendUserMessage.
type SendUserMessageParams struct {
	ConversationID string      `json:"conversationId"`
	Items          []InputItem `json:"items"`
}

// SendUserTurnParams are the params of sendUserTurn.
type SendUserTurnParams struct {
	ConversationID string           `json:"conversationId"`
	Items          []InputItem      `json:"items"`
	Cwd            string           `json:"cwd"`
	ApprovalPolicy ApprovalPolicy   `json:"approvalPolicy"`
	SandboxPolicy  SandboxPolicy    `json:"sandboxPolicy"`
	Model          string           `json:"model"`
	Effort         ReasoningEffort  `json:"effort,omitzero"`
	Summary        ReasoningSummary `json:"summary"`
}

// InterruptConversationParams are the params of interruptConversation.
type InterruptConversationParams struct {
	ConversationID string `json:"conversationId"`
}

// InterruptConversationResult is the result of interruptConversation, sent
// after the turn_aborted event.
type InterruptConversationResult struct {
	AbortReason AbortReason `json:"abortReason"`
}

// ExecCommandApprovalParams are the params of the server's request
// execCommandApproval.
type ExecCommandApprovalParams struct {
	ConversationID string   `json:"conversation_id"`
	CallID         string   `json:"call_id"`
	Command        []string `json:"command"`
	Cwd            string   `json:"cwd"`
	Reason         string   `json:"reason,omitzero"`
}

// ApplyPatchApprovalParams are the params of the server's request
// applyPatchApproval.
type ApplyPatchApprovalParams struct {
	ConversationID string                `json:"conversation_id"`
	CallID         string                `json:"call_id"`
	FileChanges    map[string]FileChange `json:"file_changes"`
	Reason         string                `json:"reason,omitzero"`
	GrantRoot      string                `json:"grant_root,omitzero"`
}

// wireItem is an [InputItem] as these methods write it: the type beside an
// object named data.
type wireItem struct {
	Type InputItemType `json:"type"`
	Data wireItemData  `json:"data"`
}

type wireItemData struct {
	Text     *string `json:"text,omitzero"`
	ImageURL *string `json:"image_url,omitzero"`
	Path     *string `json:"path,omitzero"`
}

// MarshalJSON writes {"type":…,"data":{…}}.
func (i InputItem) MarshalJSON() ([]byte, error) {
	w := wireItem{Type: i.Type}
	switch i.Type {
	case InputText:
		w.Data.Text = &i.Text
	case InputImage:
		w.Data.ImageURL = &i.ImageURL
	case InputLocalImage:
		w.Data.Path = &i.Path
	default:
		return nil, fmt.Errorf("protocol: input item of unknown type %q", string(i.Type))
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads {"type":…,"data":{…}}.
func (i *InputItem) UnmarshalJSON(b []byte) error {
	var w wireItem
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*i = InputItem{Type: w.Type}
	field, value := "", (*string)(nil)
	switch w.Type {
	case InputText:
		field, value = "text", w.Data.Text
	case InputImage:
		field, value = "image_url", w.Data.ImageURL
	case InputLocalImage:
		field, value = "path", w.Data.Path
	default:
		return fmt.Errorf("type %q is none of text, image and localImage", string(w.Type))
	}
	if value == nil {
		return fmt.Errorf("an item of type %s needs data.%s", w.Type, field)
	}
	switch w.Type {
	case InputText:
		i.Text = *value
	case InputImage:
		i.ImageURL = *value
	case InputLocalImage:
		i.Path = *value
	}
	return nil
}
