package protocol

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// NewConversationParams are the choices of newConversation, as those of [Config]. Every member may be absent or null.
type NewConversationParams struct {
	Model                 string         `json:"model,omitzero"`
	Profile               string         `json:"profile,omitzero"`
	Cwd                   string         `json:"cwd,omitzero"`
	ApprovalPolicy        ApprovalPolicy `json:"approvalPolicy,omitzero"`
	Sandbox               SandboxMode    `json:"sandbox,omitzero"`
	Config                Overrides      `json:"config,omitzero"`
	BaseInstructions      *string        `json:"baseInstructions,omitzero"`
	IncludePlanTool       *bool          `json:"includePlanTool,omitzero"`
	IncludeApplyPatchTool *bool          `json:"includeApplyPatchTool,omitzero"`
}

// NewConversationResult is the result of newConversation: Model answers, and RolloutPath is the conversation's file.
type NewConversationResult struct {
	// ConversationID is a UUID, for the other methods.
	ConversationID string `json:"conversationId"`
	Model          string `json:"model"`
	// ReasoningEffort is left out for models without one.
	ReasoningEffort ReasoningEffort `json:"reasoningEffort,omitzero"`
	RolloutPath     string          `json:"rolloutPath"`
}

// ListConversationsParams say which page of a list of conversations is wanted.
type ListConversationsParams struct {
	// PageSize is 25 by default; 0 returns no items.
	PageSize *int
	// Cursor is the NextCursor of the previous page.
	Cursor string
}

// ConversationSummary is one conversation of a list: ConversationID is its UUID, and Path its rollout.
type ConversationSummary struct {
	ConversationID string
	Path           string
	// Preview is the user's first message.
	Preview string
	// Timestamp is when it started, RFC 3339; nil if that is not known.
	Timestamp *string
	// Title is the name that the user gave it, or "", and Cwd its working folder.
	Title string
	Cwd   string
	// Origin is the program that began it, and Holder who has it open; "" if that is not known.
	Origin string
	Holder string
	// News is what its engine did in it since the last turn, and the next result will say; "" is nothing.
	News string
}

// ListConversationsResult is a page of a list of conversations: Items, newest first.
type ListConversationsResult struct {
	Items []ConversationSummary
	// NextCursor asks for the next page; nil when there is none.
	NextCursor *string
}

// AddConversationListenerParams are the params of addConversationListener for the conversation ConversationID.
type AddConversationListenerParams struct {
	ConversationID string `json:"conversationId"`
}

// AddConversationListenerResult is the result of addConversationListener. SubscriptionID is for removeConversationListener.
type AddConversationListenerResult struct {
	SubscriptionID string `json:"subscriptionId"`
}

// RemoveConversationListenerParams are the params of removeConversationListener, with the SubscriptionID of the result of
// addConversationListener.
type RemoveConversationListenerParams struct {
	SubscriptionID string `json:"subscriptionId"`
}

// SendUserMessageParams are the params of sendUserMessage: the message Items for the conversation ConversationID.
type SendUserMessageParams struct {
	ConversationID string      `json:"conversationId"`
	Items          []InputItem `json:"items"`
}

// InterruptConversationParams are the params of interruptConversation for the conversation ConversationID.
type InterruptConversationParams struct {
	ConversationID string `json:"conversationId"`
}

// InterruptConversationResult is the result of interruptConversation, sent
// after the turn_aborted event, whose reason AbortReason is.
type InterruptConversationResult struct {
	AbortReason string `json:"abortReason"`
}

// ExecCommandApprovalParams are the params of the server's request execCommandApproval: Command is the argv of the call
// CallID in the conversation ConversationID.
type ExecCommandApprovalParams struct {
	ConversationID string   `json:"conversation_id"`
	CallID         string   `json:"call_id"`
	Command        []string `json:"command"`
	// Cwd is the absolute path of the folder in which it would run.
	Cwd string `json:"cwd"`
	// Reason is the model's or the engine's, left out without one.
	Reason string `json:"reason,omitzero"`
}

// ApplyPatchApprovalParams are the params of the server's request applyPatchApproval: FileChanges, by absolute path, is the
// patch of the call CallID in the conversation ConversationID.
type ApplyPatchApprovalParams struct {
	ConversationID string                `json:"conversation_id"`
	CallID         string                `json:"call_id"`
	FileChanges    map[string]FileChange `json:"file_changes"`
	// Reason is the model's or the engine's, left out without one.
	Reason string `json:"reason,omitzero"`
	// GrantRoot is a folder. If the patch is approved for the session, later patches below
	// it need no approval.
	GrantRoot string `json:"grant_root,omitzero"`
}

// field returns the member of data that belongs to the item's type, or nil if the type is unknown.
func (i *InputItem) field() (name string, value *string) {
	switch i.Type {
	case InputText:
		return "text", &i.Text
	case InputImage:
		return "image_url", &i.ImageURL
	case InputLocalImage:
		return "path", &i.Path
	}
	return "", nil
}

// wireItem is an [InputItem] as these methods write it.
type wireItem struct {
	Type InputItemType  `json:"type"`
	Data map[string]any `json:"data"`
}

// MarshalJSON writes {"type":…,"data":{…}}.
func (i InputItem) MarshalJSON() ([]byte, error) {
	name, value := i.field()
	if value == nil {
		return nil, fmt.Errorf("protocol: input item of unknown type %q", string(i.Type))
	}
	return json.Marshal(wireItem{i.Type, map[string]any{name: *value}})
}

// UnmarshalJSON reads {"type":…,"data":{…}}.
func (i *InputItem) UnmarshalJSON(b []byte) error {
	var w wireItem
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*i = InputItem{Type: w.Type}
	name, value := i.field()
	if value == nil {
		return fmt.Errorf("type %q must be text, image or localImage", string(w.Type))
	}
	text, ok := w.Data[name].(string)
	if !ok {
		return fmt.Errorf("an item of type %s needs the text data.%s", w.Type, name)
	}
	*value = text
	return nil
}
