package appserver

import (
	stdjson "encoding/json"
	"net/http"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/go-json-experiment/json"
)

// The types in the wire_ files are the part of the app-server's protocol that the bridge
// uses, with the app-server's names. Other members are ignored, because newer versions add
// some.

type initializeParams struct {
	ClientInfo   clientInfo   `json:"clientInfo"`
	Capabilities capabilities `json:"capabilities"`
}

type clientInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

type capabilities struct {
	ExperimentalAPI bool `json:"experimentalApi"`
}

type configParams struct {
	Cwd string `json:"cwd,omitzero"`
}

type initializeReply struct {
	UserAgent string `json:"userAgent"`
	CodexHome string `json:"codexHome"` // since 0.125
}

// threadParams are those of thread/start and thread/resume.
type threadParams struct {
	ThreadID              string                        `json:"threadId,omitzero"`
	ExcludeTurns          bool                          `json:"excludeTurns,omitzero"`
	Model                 string                        `json:"model,omitzero"`
	Cwd                   string                        `json:"cwd,omitzero"`
	ApprovalPolicy        string                        `json:"approvalPolicy,omitzero"`
	ApprovalsReviewer     string                        `json:"approvalsReviewer,omitzero"`
	Sandbox               protocol.SandboxMode          `json:"sandbox,omitzero"`
	Config                map[string]stdjson.RawMessage `json:"config,omitzero"`
	BaseInstructions      *string                       `json:"baseInstructions,omitzero"`
	DeveloperInstructions *string                       `json:"developerInstructions,omitzero"`

	workspace bool // fail unless Codex reports the sandbox workspaceWrite
	readOnly  bool // fail unless Codex reports that the thread is read-only
	bounded   bool // fail if Codex reports that the thread may do more
}

// threadReply answers thread/start and thread/resume with the settings of the thread.
type threadReply struct {
	Thread            wireThread         `json:"thread"`
	Model             string             `json:"model"`
	ModelProvider     string             `json:"modelProvider"`
	Cwd               string             `json:"cwd"`
	ApprovalPolicy    stdjson.RawMessage `json:"approvalPolicy"` // a word, or an object of finer rules
	ApprovalsReviewer string             `json:"approvalsReviewer"`
	Sandbox           sandboxPolicy      `json:"sandbox"`
	ReasoningEffort   string             `json:"reasoningEffort"`
}

type wireThread struct {
	ID        string     `json:"id"`
	Path      string     `json:"path"`
	Name      string     `json:"name"` // null if the user has given none
	Preview   string     `json:"preview"`
	Cwd       string     `json:"cwd"`
	CreatedAt int64      `json:"createdAt"` // Unix seconds
	UpdatedAt int64      `json:"updatedAt"`
	Turns     []wireTurn `json:"turns"`
}

type turnParams struct {
	ThreadID       string                    `json:"threadId"`
	Input          []inputItem               `json:"input"`
	Cwd            string                    `json:"cwd,omitzero"`
	ApprovalPolicy string                    `json:"approvalPolicy,omitzero"`
	SandboxPolicy  *sandboxPolicy            `json:"sandboxPolicy,omitzero"`
	Model          string                    `json:"model,omitzero"`
	Effort         protocol.ReasoningEffort  `json:"effort,omitzero"`
	Summary        protocol.ReasoningSummary `json:"summary,omitzero"`
	OutputSchema   stdjson.RawMessage        `json:"outputSchema,omitzero"` // of this turn's last message
}

type inputItem struct {
	Type string  `json:"type"` // text, image or localImage
	Text *string `json:"text,omitzero"`
	URL  *string `json:"url,omitzero"`
	Path *string `json:"path,omitzero"`
}

// sandboxPolicy is tagged by its type: readOnly, workspaceWrite,
// dangerFullAccess or externalSandbox.
type sandboxPolicy struct {
	Type                string             `json:"type"`
	NetworkAccess       stdjson.RawMessage `json:"networkAccess,omitzero"` // a boolean, or a word in an externalSandbox
	WritableRoots       []string           `json:"writableRoots,omitempty"`
	ExcludeTmpdirEnvVar bool               `json:"excludeTmpdirEnvVar,omitzero"`
	ExcludeSlashTmp     bool               `json:"excludeSlashTmp,omitzero"`
}

type turnReply struct {
	Turn wireTurn `json:"turn"`
}

type wireTurn struct {
	ID     string               `json:"id"`
	Status string               `json:"status"` // inProgress, completed, interrupted or failed
	Error  *turnError           `json:"error"`
	Items  []stdjson.RawMessage `json:"items"`
}

type turnError struct {
	Message string             `json:"message"`
	Info    stdjson.RawMessage `json:"codexErrorInfo"` // a word, or an object with one member
	Details string             `json:"additionalDetails"`
}

// why returns the kind of the error or "", and its HTTP status or 0.
func (e *turnError) why() (kind string, status int) {
	if json.Unmarshal(e.Info, &kind) == nil {
		return kind, 0
	}
	var object map[string]struct {
		Status int `json:"httpStatusCode"`
	}
	if json.Unmarshal(e.Info, &object) == nil {
		for kind, o := range object { // there is one
			return kind, o.Status
		}
	}
	return "", 0
}

// text returns the error for people.
func (e *turnError) text() string {
	text := e.Message
	if e.Details != "" {
		text += ": " + e.Details
	}
	kind, status := e.why()
	if kind != "" && kind != "other" {
		text += " (" + kind + ")"
	}
	if kind == "contextWindowExceeded" {
		text += "\n" + hintRoom
	}
	if kind == "unauthorized" || status == http.StatusUnauthorized {
		text += "\n" + hintLogin
	}
	return text
}

// reviewParams are those of review/start.
type reviewParams struct {
	ThreadID string       `json:"threadId"`
	Target   reviewTarget `json:"target"`
}

// reviewTarget is tagged by its type: uncommittedChanges, baseBranch, commit or
// custom.
type reviewTarget struct {
	Type         string `json:"type"`
	Branch       string `json:"branch,omitzero"`
	SHA          string `json:"sha,omitzero"`
	Instructions string `json:"instructions,omitzero"`
}
