package appserver

import "encoding/json"

// The requests that the app-server sends.
const (
	askCommand     = "item/commandExecution/requestApproval"
	askFileChange  = "item/fileChange/requestApproval"
	askPermissions = "item/permissions/requestApproval"
	askUserInput   = "item/tool/requestUserInput"
	askElicitation = "mcpServer/elicitation/request"
)

// commandApproval are the params of [askCommand].
type commandApproval struct {
	Kind     string           `json:"kind"` // command (the default), humanCommand or writeStdin
	ThreadID string           `json:"threadId"`
	TurnID   string           `json:"turnId"`
	ItemID   string           `json:"itemId"`
	Reason   string           `json:"reason"`
	Command  string           `json:"command"`
	Cwd      string           `json:"cwd"`
	Network  *networkApproval `json:"networkApprovalContext"`
	// Permissions are what the command may do beyond the sandbox; null is nothing.
	Permissions json.RawMessage `json:"additionalPermissions"`
	// Prefix is the beginning of an argv, and Hosts are hosts, for which Codex proposes a rule.
	Prefix []string   `json:"proposedExecpolicyAmendment"`
	Hosts  []hostRule `json:"proposedNetworkPolicyAmendments"`
	// Available are the decisions that Codex offers. Before it had them they are nil.
	Available []json.RawMessage `json:"availableDecisions"`
}

// hostRule is a rule of Codex about a host.
type hostRule struct {
	Action string `json:"action"` // allow or deny
	Host   string `json:"host"`
}

type networkApproval struct {
	Host     string `json:"host"`
	Protocol string `json:"protocol"`
}

// fileChangeApproval are the params of [askFileChange]. The changes are in the item, which
// was started before.
type fileChangeApproval struct {
	ThreadID  string `json:"threadId"`
	TurnID    string `json:"turnId"`
	ItemID    string `json:"itemId"`
	Reason    string `json:"reason"`
	GrantRoot string `json:"grantRoot"`
}

// decisionReply answers [askCommand] and [askFileChange]. The app-server takes any other
// answer for an error and denies.
type decisionReply struct {
	Decision decision `json:"decision"`
	// Rule is the decision in place of Decision if a person accepted a rule.
	Rule json.RawMessage `json:"-"`
}

// MarshalJSON implements [json.Marshaler].
func (r decisionReply) MarshalJSON() ([]byte, error) {
	if r.Rule != nil {
		return json.Marshal(map[string]json.RawMessage{"decision": r.Rule})
	}
	type plain decisionReply
	return json.Marshal(plain(r))
}

type decision string

const (
	accept           decision = "accept"
	acceptForSession decision = "acceptForSession"
	decline          decision = "decline"
	cancelTurn       decision = "cancel"
)

// permissionsApproval are the params of [askPermissions].
type permissionsApproval struct {
	ThreadID    string          `json:"threadId"`
	TurnID      string          `json:"turnId"`
	ItemID      string          `json:"itemId"`
	Cwd         string          `json:"cwd"`
	Reason      string          `json:"reason"`
	Permissions json.RawMessage `json:"permissions"`
}

// permissionsReply grants the permissions in it.
type permissionsReply struct {
	Permissions json.RawMessage `json:"permissions"`
	Scope       string          `json:"scope"` // turn or session
}

// userInput are the params of [askUserInput].
type userInput struct {
	ThreadID  string         `json:"threadId"`
	TurnID    string         `json:"turnId"`
	Questions []wireQuestion `json:"questions"`
}

type wireQuestion struct {
	ID       string `json:"id"`
	Header   string `json:"header"`
	Question string `json:"question"`
	IsOther  bool   `json:"isOther"`  // the answer may be other than the options
	IsSecret bool   `json:"isSecret"` // the answer is a secret
	Options  []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}

type userInputReply struct {
	Answers map[string]answers `json:"answers"`
}

type answers struct {
	Answers []string `json:"answers"`
}

// elicitation are the params of [askElicitation]: a question of one of Codex's MCP
// servers, or of Codex about a call of one of their tools.
type elicitation struct {
	ThreadID        string          `json:"threadId"`
	TurnID          string          `json:"turnId"`
	ServerName      string          `json:"serverName"`
	Mode            string          `json:"mode"` // form, url, or one of Codex's own
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
	ElicitationID   string          `json:"elicitationId"`
	URL             string          `json:"url"`
	Meta            json.RawMessage `json:"_meta"`
}

type elicitationReply struct {
	Action  string          `json:"action"` // accept, decline or cancel
	Content json.RawMessage `json:"content"`
	Meta    json.RawMessage `json:"_meta,omitzero"`
}
