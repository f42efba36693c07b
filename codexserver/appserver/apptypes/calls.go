package apptypes

import (
	"encoding/json"
)

// InitializeParams are those of the first call.
type InitializeParams struct {
	Capabilities Capabilities `json:"capabilities,omitzero"`
	ClientInfo   ClientInfo   `json:"clientInfo"`
}

// ClientInfo names the client. Codex records the name and sends it to the model's provider.
type ClientInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitzero"`
	Version string `json:"version"`
}

// Capabilities are what a client asks for beyond the stable protocol.
type Capabilities struct {
	ExperimentalAPI       bool `json:"experimentalApi,omitzero"`
	RequiredHumanApproval bool `json:"requiredHumanApproval,omitzero"`
}

// InitializeReply answers the first call. UserAgent has the version of Codex, CodexHome its folder.
type InitializeReply struct {
	CodexHome string `json:"codexHome"`
	UserAgent string `json:"userAgent"`
}

// ExecParams are those of command/exec, which runs a command without a thread in a sandbox. ProcessID is the client's own
// name of the run, by which [Note] has its output and command/exec/terminate ends it. Env changes the environment that
// commands of the app-server have: a value sets a variable, and nil leaves it out.
type ExecParams struct {
	Command            []string           `json:"command"`
	Cwd                string             `json:"cwd"`
	DisableOutputCap   bool               `json:"disableOutputCap,omitzero"`
	Env                map[string]*string `json:"env,omitzero"`
	ProcessID          string             `json:"processId"`
	SandboxPolicy      *SandboxPolicy     `json:"sandboxPolicy"`
	StreamStdoutStderr bool               `json:"streamStdoutStderr,omitzero"`
	TimeoutMS          int64              `json:"timeoutMs"`
}

// ExecReply answers command/exec when the command has ended and its output was sent. The output is empty if it was streamed.
type ExecReply struct {
	ExitCode int64  `json:"exitCode"`
	Stderr   string `json:"stderr"`
	Stdout   string `json:"stdout"`
}

// ExecRef names a run of command/exec.
type ExecRef struct {
	ProcessID string `json:"processId"`
}

// ThreadParams are those of thread/start and thread/resume. Only the last one has a ThreadID, and
// may leave out the turns of the answer.
type ThreadParams struct {
	ApprovalPolicy        string         `json:"approvalPolicy,omitzero"`
	ApprovalsReviewer     string         `json:"approvalsReviewer,omitzero"`
	BaseInstructions      *string        `json:"baseInstructions,omitzero"`
	Config                map[string]any `json:"config,omitzero"`
	Cwd                   string         `json:"cwd,omitzero"`
	DeveloperInstructions *string        `json:"developerInstructions,omitzero"`
	ExcludeTurns          bool           `json:"excludeTurns,omitzero"`
	Model                 string         `json:"model,omitzero"`
	Sandbox               string         `json:"sandbox,omitzero"`
	ThreadID              string         `json:"threadId,omitzero"`
}

// ThreadReply answers thread/start and thread/resume with the settings of the thread.
// ApprovalPolicy is a word or an object with finer rules.
type ThreadReply struct {
	ApprovalPolicy    json.RawMessage `json:"approvalPolicy"`
	ApprovalsReviewer string          `json:"approvalsReviewer"`
	Cwd               string          `json:"cwd"`
	Model             string          `json:"model"`
	ModelProvider     string          `json:"modelProvider"`
	ReasoningEffort   string          `json:"reasoningEffort,omitzero"`
	Sandbox           SandboxPolicy   `json:"sandbox"`
	Thread            Thread          `json:"thread"`
}

// Thread is a conversation. CreatedAt is in seconds since 1970; Path is its rollout.
type Thread struct {
	CreatedAt     int64        `json:"createdAt"`
	Cwd           string       `json:"cwd"`
	ID            string       `json:"id"`
	ModelProvider string       `json:"modelProvider"`
	Name          string       `json:"name,omitzero"`
	Originator    string       `json:"originator,omitzero"`
	Path          string       `json:"path,omitzero"`
	Preview       string       `json:"preview"`
	Status        ThreadStatus `json:"status"`
	Turns         []Turn       `json:"turns"`
}

// ThreadStatus says whether a thread is loaded: one of ThreadStatus….
type ThreadStatus struct {
	Type string `json:"type"`
}

// SandboxPolicy is the sandbox of a turn. NetworkAccess is a boolean, but a word for an external sandbox.
type SandboxPolicy struct {
	ExcludeSlashTmp     bool            `json:"excludeSlashTmp,omitzero"`
	ExcludeTmpdirEnvVar bool            `json:"excludeTmpdirEnvVar,omitzero"`
	NetworkAccess       json.RawMessage `json:"networkAccess,omitzero"`
	Type                string          `json:"type"`
	WritableRoots       []string        `json:"writableRoots,omitzero"`
}

// ThreadRef are the params of calls about a thread.
type ThreadRef struct {
	ThreadID string `json:"threadId"`
}

// Goal is what the model of a thread works at, in turns that Codex begins by itself while the status is ThreadGoalStatusActive.
type Goal struct {
	Status string `json:"status"`
}

// GoalParams are those of thread/goal/set, which changes what is set.
type GoalParams struct {
	Status   string `json:"status,omitzero"`
	ThreadID string `json:"threadId"`
}

// GoalReply answers thread/goal/get and thread/goal/set. Goal is nil if the thread has none.
type GoalReply struct {
	Goal *Goal `json:"goal,omitzero"`
}

// ThreadsParams are those of thread/list.
type ThreadsParams struct {
	Cursor string `json:"cursor,omitzero"`
	Limit  int64  `json:"limit,omitzero"`
}

// ThreadsReply answers thread/list with a page.
type ThreadsReply struct {
	Data       []Thread `json:"data"`
	NextCursor string   `json:"nextCursor,omitzero"`
}

// TurnParams are those of turn/start. What is set holds for the later turns, too.
type TurnParams struct {
	ApprovalPolicy      json.RawMessage `json:"approvalPolicy,omitzero"`
	ClientUserMessageID string          `json:"clientUserMessageId,omitzero"`
	Effort              string          `json:"effort,omitzero"`
	Input               []Input         `json:"input"`
	OutputSchema        json.RawMessage `json:"outputSchema,omitzero"`
	SandboxPolicy       *SandboxPolicy  `json:"sandboxPolicy,omitzero"`
	ThreadID            string          `json:"threadId"`
}

// TurnReply answers turn/start.
type TurnReply struct {
	Turn Turn `json:"turn"`
}

// Input is a part of a message of the user. Type is one of UserInput…, and says which other member it has.
type Input struct {
	Path *string `json:"path,omitzero"`
	Text *string `json:"text,omitzero"`
	Type string  `json:"type"`
	URL  *string `json:"url,omitzero"`
}

// Turn is a turn of a thread. Status is one of TurnStatus….
type Turn struct {
	Error  *TurnError        `json:"error,omitzero"`
	ID     string            `json:"id"`
	Items  []json.RawMessage `json:"items"`
	Status string            `json:"status"`
}

// SteerParams are those of turn/steer, a message to the running turn ExpectedTurnID.
type SteerParams struct {
	ExpectedTurnID string  `json:"expectedTurnId"`
	Input          []Input `json:"input"`
	ThreadID       string  `json:"threadId"`
}

// InjectParams are those of thread/inject_items: items of the provider's API that the model has in its history from then on.
type InjectParams struct {
	Items    []json.RawMessage `json:"items"`
	ThreadID string            `json:"threadId"`
}

// OverruleParams are those of thread/approveGuardianDeniedAction. Event is what was denied, in a form of Codex's core: the
// members of the review that ended and of its action, with names and words such as target_item_id.
type OverruleParams struct {
	Event    map[string]any `json:"event"`
	ThreadID string         `json:"threadId"`
}

// InterruptParams are those of turn/interrupt.
type InterruptParams struct {
	ThreadID string `json:"threadId"`
	TurnID   string `json:"turnId"`
}

// ConfigParams are those of config/read. Without Cwd, no repository's configuration counts.
type ConfigParams struct {
	Cwd           string `json:"cwd,omitzero"`
	IncludeLayers bool   `json:"includeLayers,omitzero"`
}

// ConfigReply answers config/read. The layers are those that were asked for, the strongest first.
type ConfigReply struct {
	Config map[string]any `json:"config"`
	Layers []ConfigLayer  `json:"layers,omitzero"`
}

// ConfigLayer is a file or the flags of which a configuration is made. It counts unless DisabledReason says why
// not.
type ConfigLayer struct {
	Config         any    `json:"config"`
	DisabledReason string `json:"disabledReason,omitzero"`
}

// AccountReply answers account/read. RequiresOpenaiAuth is whether the configured provider needs an account;
// Account is nil if nobody is signed in.
type AccountReply struct {
	Account            *Account `json:"account,omitzero"`
	RequiresOpenaiAuth bool     `json:"requiresOpenaiAuth"`
}

// Account is who is signed in. Type is AccountAPIKey or another word of Codex's; Email is that of a ChatGPT
// account.
type Account struct {
	Email string `json:"email,omitzero"`
	Type  string `json:"type"`
}

// LimitsReply answers account/rateLimits/read.
type LimitsReply struct {
	RateLimits RateLimits `json:"rateLimits"`
}

// ModelsParams are those of model/list.
type ModelsParams struct {
	Cursor string `json:"cursor,omitzero"`
}

// ModelsReply answers model/list with a page.
type ModelsReply struct {
	Data       []Model `json:"data"`
	NextCursor string  `json:"nextCursor,omitzero"`
}

// Model is a model that can be chosen.
type Model struct {
	DefaultReasoningEffort    string        `json:"defaultReasoningEffort"`
	Description               string        `json:"description"`
	IsDefault                 bool          `json:"isDefault"`
	Model                     string        `json:"model"`
	SupportedReasoningEfforts []ModelEffort `json:"supportedReasoningEfforts"`
}

// ModelEffort is an effort that a model supports.
type ModelEffort struct {
	ReasoningEffort string `json:"reasoningEffort"`
}
