package apptypes

// The names of constants begin with the name of the definition in the schema, the values follow. Newer
// versions of Codex have further values.

// The kind of an [Account].
const AccountAPIKey = "apiKey"

// Kinds of a [CommandAction].
const CommandActionListFiles = "listFiles"

// Kinds of the change of a file.
const (
	PatchChangeKindAdd    = "add"
	PatchChangeKindDelete = "delete"
	PatchChangeKindUpdate = "update"
)

// Kinds of a [SandboxPolicy].
const (
	SandboxPolicyDangerFullAccess = "dangerFullAccess"
	SandboxPolicyReadOnly         = "readOnly"
	SandboxPolicyWorkspaceWrite   = "workspaceWrite"
)

// Kinds of an [Item].
const (
	ThreadItemAgentMessage        = "agentMessage"
	ThreadItemCollabAgentToolCall = "collabAgentToolCall"
	ThreadItemCommandExecution    = "commandExecution"
	ThreadItemContextCompaction   = "contextCompaction"
	ThreadItemFileChange          = "fileChange"
	ThreadItemImageGeneration     = "imageGeneration"
	ThreadItemImageView           = "imageView"
	ThreadItemMCPToolCall         = "mcpToolCall"
	ThreadItemReasoning           = "reasoning"
	ThreadItemSubAgentActivity    = "subAgentActivity"
	ThreadItemUserMessage         = "userMessage"
	ThreadItemWebSearch           = "webSearch"
)

// Kinds of a [ThreadStatus]; of a thread that is not loaded there are others.
const (
	ThreadStatusActive = "active"
	ThreadStatusIdle   = "idle"
)

// Kinds of an [Input].
const (
	UserInputImage      = "image"
	UserInputLocalImage = "localImage"
	UserInputText       = "text"
)

// Who reviews approvals.
const ApprovalsReviewerUser = "user"

// Kinds of a [TurnError].
const (
	CodexErrorInfoActiveTurnNotSteerable         = "activeTurnNotSteerable"
	CodexErrorInfoBadRequest                     = "badRequest"
	CodexErrorInfoBioPolicy                      = "bioPolicy"
	CodexErrorInfoContextWindowExceeded          = "contextWindowExceeded"
	CodexErrorInfoCyberPolicy                    = "cyberPolicy"
	CodexErrorInfoFlexUnavailable                = "flexUnavailable"
	CodexErrorInfoHTTPConnectionFailed           = "httpConnectionFailed"
	CodexErrorInfoInferenceHookDenied            = "inferenceHookDenied"
	CodexErrorInfoInternalServerError            = "internalServerError"
	CodexErrorInfoMisalignmentPolicyViolation    = "misalignmentPolicyViolation"
	CodexErrorInfoModelNotFound                  = "modelNotFound"
	CodexErrorInfoOther                          = "other"
	CodexErrorInfoPolicyCapacityUnavailable      = "policyCapacityUnavailable"
	CodexErrorInfoRateLimitExceeded              = "rateLimitExceeded"
	CodexErrorInfoResponseStreamConnectionFailed = "responseStreamConnectionFailed"
	CodexErrorInfoResponseStreamDisconnected     = "responseStreamDisconnected"
	CodexErrorInfoResponseTooManyFailedAttempts  = "responseTooManyFailedAttempts"
	CodexErrorInfoSandboxError                   = "sandboxError"
	CodexErrorInfoServerOverloaded               = "serverOverloaded"
	CodexErrorInfoSessionBudgetExceeded          = "sessionBudgetExceeded"
	CodexErrorInfoThreadRollbackFailed           = "threadRollbackFailed"
	CodexErrorInfoTooManyDenials                 = "tooManyDenials"
	CodexErrorInfoUnauthorized                   = "unauthorized"
	CodexErrorInfoUsageLimitExceeded             = "usageLimitExceeded"
)

// Why a model was replaced by another one.
const ModelRerouteReasonHighRiskCyberActivity = "highRiskCyberActivity"

// How the start of an MCP server goes, and why it failed.
const (
	MCPServerStartupStateCancelled = "cancelled"
	MCPServerStartupStateFailed    = "failed"
	MCPServerStartupStateReady     = "ready"
	MCPServerStartupStateStarting  = "starting"

	MCPServerStartupFailureReasonReauthenticationRequired = "reauthenticationRequired"
)

// Answers about commands and patches, and to an [Elicitation].
const (
	CommandExecutionApprovalDecisionAccept  = "accept"
	CommandExecutionApprovalDecisionCancel  = "cancel"
	CommandExecutionApprovalDecisionDecline = "decline"
)

// What a [CommandApproval] is about.
const (
	CommandExecutionApprovalKindCommand      = "command"
	CommandExecutionApprovalKindHumanCommand = "humanCommand"
	CommandExecutionApprovalKindWriteStdin   = "writeStdin"
)

// States of a command.
const CommandExecutionStatusDeclined = "declined"

// What a [ReviewAction] is.
const (
	GuardianApprovalReviewActionApplyPatch         = "applyPatch"
	GuardianApprovalReviewActionCommand            = "command"
	GuardianApprovalReviewActionExecve             = "execve"
	GuardianApprovalReviewActionMCPToolCall        = "mcpToolCall"
	GuardianApprovalReviewActionNetworkAccess      = "networkAccess"
	GuardianApprovalReviewActionRequestPermissions = "requestPermissions"
	GuardianApprovalReviewActionWriteStdin         = "writeStdin"
)

// How a [Review] ended.
const (
	GuardianApprovalReviewStatusAborted  = "aborted"
	GuardianApprovalReviewStatusApproved = "approved"
	GuardianApprovalReviewStatusDenied   = "denied"
	GuardianApprovalReviewStatusTimedOut = "timedOut"
)

// What fuzzyFileSearch found.
const FuzzyFileSearchMatchTypeFile = "file"

// What a [HookRun] is about, and how it ended.
const (
	HookEventNamePermissionRequest = "permissionRequest"
	HookRunStatusBlocked           = "blocked"
)

// States of the call of a tool.
const MCPToolCallStatusFailed = "failed"

// What a message of the model is.
const MessagePhaseFinalAnswer = "final_answer"

// States of a patch.
const PatchApplyStatusCompleted = "completed"

// How long permissions are granted.
const PermissionGrantScopeTurn = "turn"

// States of a step of a plan.
const TurnPlanStepStatusInProgress = "inProgress"

// States of a [Goal].
const (
	ThreadGoalStatusActive = "active"
	ThreadGoalStatusPaused = "paused"
)

// States of a turn.
const (
	TurnStatusCompleted   = "completed"
	TurnStatusFailed      = "failed"
	TurnStatusInterrupted = "interrupted"
)
