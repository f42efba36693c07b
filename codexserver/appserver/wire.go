package appserver

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/appserver/internal/wire"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// Package wire has the types of the protocol, generated from Codex's schema. Here is what the
// schema does not say: methods that it does not list, and values that have several forms.

// Methods that Codex answers although its schema does not list them; the last one only older
// versions.
const (
	callAuthStatus = "getAuthStatus"
	callSummary    = "getConversationSummary"
	callDiff       = "gitDiffToRemote"
	callRead       = "thread/read" // the schema lists it; only older versions need it
	callRollback   = "thread/rollback"
)

// The words of September 2025 are sent as they are. A map with two equal keys does not compile.
var _ = map[bool]struct{}{false: {}, wire.SandboxModeReadOnly == string(protocol.SandboxReadOnly) &&
	wire.SandboxModeWorkspaceWrite == string(protocol.SandboxWorkspaceWrite) &&
	wire.SandboxModeDangerFullAccess == string(protocol.SandboxDangerFullAccess) &&
	wire.AskForApprovalUntrusted == string(protocol.ApprovalUntrusted) &&
	wire.AskForApprovalOnRequest == string(protocol.ApprovalOnRequest) &&
	wire.AskForApprovalNever == string(protocol.ApprovalNever): {}}

// threadParams are those of thread/start and thread/resume.
type threadParams struct {
	wire.ThreadParams

	workspace bool // fail unless Codex reports the sandbox workspaceWrite
	readOnly  bool // fail unless Codex reports that the thread is read-only
	bounded   bool // fail if Codex reports that the thread may do more

	had *rules // fail if Codex reports wider ones; nil means no limit
}

// set adds keys to the configuration of the thread. That of another one may share the map.
func (p *threadParams) set(keys map[string]any) error {
	if len(keys) == 0 {
		return nil
	}
	p.Config = maps.Clone(p.Config)
	if p.Config == nil {
		p.Config = map[string]stdjson.RawMessage{}
	}
	for key, value := range keys {
		raw, err := json.Marshal(value)
		if err != nil {
			return configErrorf("%s: %w", key, err)
		}
		p.Config[key] = raw
	}
	return nil
}

// threadReply answers thread/start and thread/resume with the settings of the thread.
type threadReply wire.ThreadReply

// policy returns the thread's approval policy if it is a word, else "".
func (r *threadReply) policy() string {
	var word string
	if err := json.Unmarshal(r.ApprovalPolicy, &word); err != nil {
		return ""
	}
	return word
}

// itemTypes are the types of items that are read whole.
var itemTypes = []string{
	wire.ThreadItemAgentMessage, wire.ThreadItemReasoning, wire.ThreadItemCommandExecution, wire.ThreadItemFileChange,
	wire.ThreadItemMCPToolCall, wire.ThreadItemWebSearch, wire.ThreadItemImageView, wire.ThreadItemSubAgentActivity,
}

// parseItem reads an item. It reads only type and id of an unknown type, whose other
// members may have another meaning.
func parseItem(raw []byte) (wire.Item, error) {
	var head itemHead
	if err := json.Unmarshal(raw, &head); err != nil {
		return wire.Item{}, fmt.Errorf("item: %w", err)
	}
	it := wire.Item{Type: head.Type, ID: head.ID}
	if slices.Contains(itemTypes, head.Type) {
		if err := json.Unmarshal(raw, &it); err != nil {
			return wire.Item{}, fmt.Errorf("item %s: %w", head.Type, err)
		}
	}
	return it, nil
}

// itemHead are the members of items of all types.
type itemHead struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// itemCollab is the type of an item with the members of collab.
const itemCollab = "collabAgentToolCall"

// collab is a call of a tool that starts sub-agents or sends them something.
type collab struct {
	SenderThreadID    string   `json:"senderThreadId"`
	ReceiverThreadIDs []string `json:"receiverThreadIds"`
}

// typeOf returns the type of an item, or "".
func typeOf(raw []byte) string {
	var head itemHead
	if json.Unmarshal(raw, &head) != nil {
		return ""
	}
	return head.Type
}

// kindOf returns the kind of an error or "", and its HTTP status or 0. It is a word, or an object
// with one member.
func kindOf(e *wire.TurnError) (kind string, status int) {
	if json.Unmarshal(e.CodexErrorInfo, &kind) == nil {
		return kind, 0
	}
	var object map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	if json.Unmarshal(e.CodexErrorInfo, &object) == nil {
		for kind, o := range object { // there is one
			return kind, o.Status
		}
	}
	return "", 0
}

// textOf returns an error for people.
func textOf(e *wire.TurnError) string {
	text := e.Message
	if e.AdditionalDetails != "" {
		text += ": " + e.AdditionalDetails
	}
	kind, status := kindOf(e)
	if kind != "" && kind != wire.CodexErrorInfoOther {
		text += " (" + kind + ")"
	}
	if kind == wire.CodexErrorInfoContextWindowExceeded {
		text += "\n" + hintRoom
	}
	if kind == wire.CodexErrorInfoUnauthorized || status == http.StatusUnauthorized {
		text += "\n" + hintLogin
	}
	return text
}

// word returns a decision as JSON.
func word(decision string) stdjson.RawMessage {
	return stdjson.RawMessage(`"` + decision + `"`)
}
