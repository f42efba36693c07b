package apptypes

import (
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// Asked is what all questions have.
type Asked struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId,omitzero"`

	// Unknown are the members that the type of the question does not have, as an object.
	Unknown jsontext.Value `json:",embed"`
}

// CommandApproval asks whether a command may run. Command and Cwd may be missing; then the item with ItemID has
// them.
type CommandApproval struct {
	Asked
	AdditionalPermissions           json.RawMessage `json:"additionalPermissions,omitzero"`
	ApprovalID                      json.RawMessage `json:"approvalId,omitzero"`
	AvailableDecisions              json.RawMessage `json:"availableDecisions,omitzero"` // not used
	Command                         string          `json:"command,omitzero"`
	CommandActions                  json.RawMessage `json:"commandActions,omitzero"` // not used
	Cwd                             string          `json:"cwd,omitzero"`
	EnvironmentID                   json.RawMessage `json:"environmentId,omitzero"`
	ItemID                          string          `json:"itemId"`
	Kind                            string          `json:"kind,omitzero"`
	NetworkApprovalContext          *Network        `json:"networkApprovalContext,omitzero"`
	ProposedExecpolicyAmendment     json.RawMessage `json:"proposedExecpolicyAmendment,omitzero"`     // not used
	ProposedNetworkPolicyAmendments json.RawMessage `json:"proposedNetworkPolicyAmendments,omitzero"` // not used
	Reason                          string          `json:"reason,omitzero"`
	StartedAtMs                     json.RawMessage `json:"startedAtMs"` // not used
}

// Network is the host that a command wants to reach.
type Network struct {
	Host     string `json:"host"`
	Protocol string `json:"protocol"`

	// Unknown are the members that this type does not have, as an object.
	Unknown jsontext.Value `json:",embed"`
}

// Decision answers a CommandApproval or a FileApproval: one of CommandExecutionApprovalDecision….
type Decision struct {
	Decision string `json:"decision"`
}

// FileApproval asks whether a patch may be applied. Its changes are in the item with ItemID.
type FileApproval struct {
	Asked
	GrantRoot   string          `json:"grantRoot,omitzero"`
	ItemID      string          `json:"itemId"`
	Reason      string          `json:"reason,omitzero"`
	StartedAtMs json.RawMessage `json:"startedAtMs"` // not used
}

// Permissions asks for permissions beyond the sandbox.
type Permissions struct {
	Asked
	Cwd           string          `json:"cwd"`
	EnvironmentID json.RawMessage `json:"environmentId,omitzero"`
	ItemID        string          `json:"itemId"`
	Permissions   json.RawMessage `json:"permissions"`
	Reason        string          `json:"reason,omitzero"`
	StartedAtMs   json.RawMessage `json:"startedAtMs"` // not used
}

// PermissionsReply answers a Permissions with what is granted, for a turn or the session.
type PermissionsReply struct {
	Permissions json.RawMessage `json:"permissions"`
	Scope       string          `json:"scope,omitzero"`
}

// UserInput asks questions of the model.
type UserInput struct {
	Asked
	AutoResolutionMs json.RawMessage `json:"autoResolutionMs,omitzero"` // not used
	IsBlocking       json.RawMessage `json:"isBlocking"`                // not used
	ItemID           json.RawMessage `json:"itemId"`                    // not used
	Questions        []Question      `json:"questions"`
}

// Question is one question of the model to the user.
type Question struct {
	Header   string           `json:"header"`
	ID       string           `json:"id"`
	IsOther  bool             `json:"isOther,omitzero"`
	IsSecret bool             `json:"isSecret,omitzero"`
	Options  []QuestionOption `json:"options,omitzero"`
	Question string           `json:"question"`

	// Unknown are the members that this type does not have, as an object.
	Unknown jsontext.Value `json:",embed"`
}

// QuestionOption is an answer that the model offers.
type QuestionOption struct {
	Description string `json:"description"`
	Label       string `json:"label"`

	// Unknown are the members that this type does not have, as an object.
	Unknown jsontext.Value `json:",embed"`
}

// UserInputReply answers a UserInput, by the ids of the questions.
type UserInputReply struct {
	Answers map[string]Answers `json:"answers"`
}

// Answers are what the user answered to one question of the model.
type Answers struct {
	Answers []string `json:"answers"`
}

// Elicitation is a question of an MCP server, or of Codex about the call of one of its tools. Which members it
// has depends on Mode.
type Elicitation struct {
	Asked
	Meta            json.RawMessage `json:"_meta,omitzero"`
	Challenge       json.RawMessage `json:"challenge,omitzero"`   // not used
	Description     json.RawMessage `json:"description,omitzero"` // not used
	ElicitationID   string          `json:"elicitationId,omitzero"`
	EnvironmentID   json.RawMessage `json:"environmentId,omitzero"`
	Message         string          `json:"message,omitzero"`
	Mode            string          `json:"mode"`
	RequestedSchema json.RawMessage `json:"requestedSchema,omitzero"`
	ServerName      string          `json:"serverName"`
	Title           json.RawMessage `json:"title,omitzero"` // not used
	URL             string          `json:"url,omitzero"`
}

// ElicitationReply answers an Elicitation. Action is one of CommandExecutionApprovalDecision…, too.
type ElicitationReply struct {
	Meta    json.RawMessage `json:"_meta,omitzero"`
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitzero"`
}
