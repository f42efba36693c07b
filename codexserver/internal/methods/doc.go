// Package methods has the JSON-RPC methods of Codex's server of September 2025: conversations
// and their messages, the sign-in, the configuration, single commands and the search for files.
// They run commands and choose the sandbox without a question, so only clients of the user who
// started the server have them. A server that does not register them speaks only MCP.
//
//	conversation.go  newConversation, listeners
//	message.go       sendUserMessage, interruptConversation
//	account.go       getAuthStatus, logoutChatGpt
//	workspace.go     getUserAgent, fuzzyFileSearch
//	question.go      execCommandApproval, applyPatchApproval
package methods
