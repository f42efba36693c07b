package apptypes

import "slices"

// The methods that a client calls.
const (
	CallAccountLogout                     = "account/logout"
	CallAccountRateLimitsRead             = "account/rateLimits/read"
	CallAccountRead                       = "account/read"
	CallCommandExec                       = "command/exec"
	CallCommandExecTerminate              = "command/exec/terminate"
	CallConfigRead                        = "config/read"
	CallFuzzyFileSearch                   = "fuzzyFileSearch"
	CallInitialize                        = "initialize"
	CallModelList                         = "model/list"
	CallThreadApproveGuardianDeniedAction = "thread/approveGuardianDeniedAction"
	CallThreadBackgroundTerminalsClean    = "thread/backgroundTerminals/clean"
	CallThreadBackgroundTerminalsList     = "thread/backgroundTerminals/list"
	CallThreadGoalGet                     = "thread/goal/get"
	CallThreadGoalSet                     = "thread/goal/set"
	CallThreadInjectItems                 = "thread/inject_items"
	CallThreadList                        = "thread/list"
	CallThreadRead                        = "thread/read"
	CallThreadResume                      = "thread/resume"
	CallThreadStart                       = "thread/start"
	CallTurnInterrupt                     = "turn/interrupt"
	CallTurnStart                         = "turn/start"
	CallTurnSteer                         = "turn/steer"
)

// The methods that the app-server calls: they ask something.
const (
	AskItemCommandExecutionRequestApproval = "item/commandExecution/requestApproval"
	AskItemFileChangeRequestApproval       = "item/fileChange/requestApproval"
	AskItemPermissionsRequestApproval      = "item/permissions/requestApproval"
	AskItemToolRequestUserInput            = "item/tool/requestUserInput"
	AskMCPServerElicitationRequest         = "mcpServer/elicitation/request"
)

// NoteServerRequestResolved says that a question needs no answer any more.
const NoteServerRequestResolved = "serverRequest/resolved"

// The notifications of the app-server that [Note] has the params of.
const (
	NoteAccountRateLimitsUpdated               = "account/rateLimits/updated"
	NoteAutoApprovalReviewStrictReviewRequired = "autoApprovalReview/strictReviewRequired"
	NoteCommandExecOutputDelta                 = "command/exec/outputDelta"
	NoteConfigWarning                          = "configWarning"
	NoteDeprecationNotice                      = "deprecationNotice"
	NoteError                                  = "error"
	NoteGuardianWarning                        = "guardianWarning"
	NoteHookCompleted                          = "hook/completed"
	NoteItemAgentMessageDelta                  = "item/agentMessage/delta"
	NoteItemAutoApprovalReviewCompleted        = "item/autoApprovalReview/completed"
	NoteItemAutoApprovalReviewStarted          = "item/autoApprovalReview/started"
	NoteItemCommandExecutionOutputDelta        = "item/commandExecution/outputDelta"
	NoteItemCompleted                          = "item/completed"
	NoteItemReasoningSummaryPartAdded          = "item/reasoning/summaryPartAdded"
	NoteItemReasoningSummaryTextDelta          = "item/reasoning/summaryTextDelta"
	NoteItemReasoningTextDelta                 = "item/reasoning/textDelta"
	NoteItemStarted                            = "item/started"
	NoteMCPServerStartupStatusUpdated          = "mcpServer/startupStatus/updated"
	NoteModelRerouted                          = "model/rerouted"
	NoteThreadGoalUpdated                      = "thread/goal/updated"
	NoteThreadTokenUsageUpdated                = "thread/tokenUsage/updated"
	NoteTurnCompleted                          = "turn/completed"
	NoteTurnDiffUpdated                        = "turn/diff/updated"
	NoteTurnPlanUpdated                        = "turn/plan/updated"
	NoteTurnStarted                            = "turn/started"
	NoteWarning                                = "warning"
)

// read are the notifications that [Note] has the params of.
var read = []string{
	NoteAutoApprovalReviewStrictReviewRequired, NoteMCPServerStartupStatusUpdated, NoteModelRerouted,
	NoteAccountRateLimitsUpdated, NoteCommandExecOutputDelta, NoteConfigWarning, NoteDeprecationNotice, NoteError,
	NoteGuardianWarning, NoteHookCompleted, NoteItemAgentMessageDelta,
	NoteItemAutoApprovalReviewCompleted, NoteItemAutoApprovalReviewStarted, NoteItemCommandExecutionOutputDelta,
	NoteItemCompleted, NoteItemReasoningSummaryPartAdded,
	NoteItemReasoningSummaryTextDelta, NoteItemReasoningTextDelta, NoteItemStarted,
	NoteThreadGoalUpdated, NoteThreadTokenUsageUpdated,
	NoteTurnCompleted, NoteTurnDiffUpdated, NoteTurnPlanUpdated, NoteTurnStarted, NoteWarning,
}

// UsesNote reports whether [Note] has the params of a notification.
func UsesNote(method string) bool { return slices.Contains(read, method) }
