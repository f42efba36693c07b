package apptypes

// The methods that a client calls.
const (
	CallAccountLogout                  = "account/logout"
	CallAccountRateLimitsRead          = "account/rateLimits/read"
	CallAccountRead                    = "account/read"
	CallConfigRead                     = "config/read"
	CallFuzzyFileSearch                = "fuzzyFileSearch"
	CallInitialize                     = "initialize"
	CallModelList                      = "model/list"
	CallThreadBackgroundTerminalsClean = "thread/backgroundTerminals/clean"
	CallThreadDelete                   = "thread/delete"
	CallThreadInjectItems              = "thread/inject_items"
	CallThreadList                     = "thread/list"
	CallThreadRead                     = "thread/read"
	CallThreadResume                   = "thread/resume"
	CallThreadStart                    = "thread/start"
	CallTurnInterrupt                  = "turn/interrupt"
	CallTurnStart                      = "turn/start"
	CallTurnSteer                      = "turn/steer"
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
	NoteAccountRateLimitsUpdated        = "account/rateLimits/updated"
	NoteConfigWarning                   = "configWarning"
	NoteDeprecationNotice               = "deprecationNotice"
	NoteError                           = "error"
	NoteItemAgentMessageDelta           = "item/agentMessage/delta"
	NoteItemCommandExecutionOutputDelta = "item/commandExecution/outputDelta"
	NoteItemCompleted                   = "item/completed"
	NoteItemReasoningSummaryPartAdded   = "item/reasoning/summaryPartAdded"
	NoteItemReasoningSummaryTextDelta   = "item/reasoning/summaryTextDelta"
	NoteItemReasoningTextDelta          = "item/reasoning/textDelta"
	NoteItemStarted                     = "item/started"
	NoteThreadTokenUsageUpdated         = "thread/tokenUsage/updated"
	NoteTurnCompleted                   = "turn/completed"
	NoteTurnDiffUpdated                 = "turn/diff/updated"
	NoteTurnPlanUpdated                 = "turn/plan/updated"
	NoteTurnStarted                     = "turn/started"
	NoteWarning                         = "warning"
)

// UsesNote reports whether [Note] has the params of a notification.
func UsesNote(method string) bool {
	switch method {
	case NoteAccountRateLimitsUpdated,
		NoteConfigWarning,
		NoteDeprecationNotice,
		NoteError,
		NoteItemAgentMessageDelta,
		NoteItemCommandExecutionOutputDelta,
		NoteItemCompleted,
		NoteItemReasoningSummaryPartAdded,
		NoteItemReasoningSummaryTextDelta,
		NoteItemReasoningTextDelta,
		NoteItemStarted,
		NoteThreadTokenUsageUpdated,
		NoteTurnCompleted,
		NoteTurnDiffUpdated,
		NoteTurnPlanUpdated,
		NoteTurnStarted,
		NoteWarning:
		return true
	}
	return false
}

// KnownNote reports whether a supported Codex has a notification. One that is known and not used says
// nothing that a client of this package needs.
func KnownNote(method string) bool {
	switch method {
	case "account/gatewayOAuth/changed",
		"account/login/completed",
		"account/updated",
		"app/list/updated",
		"autoApprovalReview/strictReviewRequired",
		"command/exec/outputDelta",
		"externalAgentConfig/import/completed",
		"externalAgentConfig/import/progress",
		"fs/changed",
		"fuzzyFileSearch/sessionCompleted",
		"fuzzyFileSearch/sessionUpdated",
		"guardianWarning",
		"hook/completed",
		"hook/started",
		"item/autoApprovalReview/completed",
		"item/autoApprovalReview/started",
		"item/commandExecution/terminalInteraction",
		"item/fileChange/outputDelta",
		"item/fileChange/patchUpdated",
		"item/mcpToolCall/progress",
		"item/plan/delta",
		"mcpServer/event/stream/notification",
		"mcpServer/oauthLogin/completed",
		"mcpServer/startupStatus/updated",
		"model/rerouted",
		"model/safetyBuffering/updated",
		"model/verification",
		"modelProvider/authRecoveryCompleted",
		"modelProvider/authRecoveryStarted",
		"process/exited",
		"process/outputDelta",
		"project/changed",
		"remoteControl/status/changed",
		NoteServerRequestResolved,
		"skills/changed",
		"thread/archived",
		"thread/attachment/updated",
		"thread/closed",
		"thread/compacted",
		"thread/deleted",
		"thread/environment/connected",
		"thread/environment/disconnected",
		"thread/goal/cleared",
		"thread/goal/updated",
		"thread/name/updated",
		"thread/prediction/updated",
		"thread/project/updated",
		"thread/queue/changed",
		"thread/readState/changed",
		"thread/realtime/closed",
		"thread/realtime/error",
		"thread/realtime/item/completed",
		"thread/realtime/item/started",
		"thread/realtime/item/transcript/delta",
		"thread/realtime/itemAdded",
		"thread/realtime/outputAudio/delta",
		"thread/realtime/sdp",
		"thread/realtime/started",
		"thread/realtime/transcript/delta",
		"thread/realtime/transcript/done",
		"thread/reverted",
		"thread/search/partial",
		"thread/section/changed",
		"thread/settings/updated",
		"thread/started",
		"thread/status/changed",
		"thread/unarchived",
		"turn/moderationMetadata",
		"windows/worldWritableWarning",
		"windowsSandbox/setupCompleted":
		return true
	}
	return UsesNote(method)
}

// KnownAsk reports whether a supported Codex has a request to the client. Package appclient refuses one
// that is known and has no constant here.
func KnownAsk(method string) bool {
	switch method {
	case AskItemCommandExecutionRequestApproval,
		AskItemFileChangeRequestApproval,
		AskItemPermissionsRequestApproval,
		AskItemToolRequestUserInput,
		AskMCPServerElicitationRequest,
		"account/chatgptAuthTokens/refresh",
		"applyPatchApproval",
		"attestation/generate",
		"execCommandApproval",
		"item/tool/call":
		return true
	}
	return false
}
