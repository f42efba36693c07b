package protocol

import "encoding/json"

// RolloutLine is one line of a conversation's file,
// sessions/YYYY/MM/DD/rollout-<local time>-<conversation id>.jsonl below
// $CODEX_HOME.
type RolloutLine struct {
	// Timestamp is RFC 3339 in UTC with milliseconds.
	Timestamp string      `json:"timestamp"`
	Type      RolloutType `json:"type"`
	// Payload is, as Type says, a [SessionMeta], a [ResponseItem], a flat [EventMsg], a
	// [TurnContext], a [Compacted], or a record of the native engine.
	Payload json.RawMessage `json:"payload"`
}

// RolloutType tags a [RolloutLine].
type RolloutType string

// The kinds of line in a rollout. Readers skip kinds that they do not know.
const (
	RolloutSessionMeta  RolloutType = "session_meta"
	RolloutResponseItem RolloutType = "response_item"
	RolloutEventMsg     RolloutType = "event_msg"
	RolloutTurnContext  RolloutType = "turn_context"
	RolloutCompacted    RolloutType = "compacted"
)

// SessionMeta is the first line of a rollout, for the conversation ID.
type SessionMeta struct {
	ID string `json:"id"`
	// Timestamp is when the conversation started, RFC 3339.
	Timestamp string `json:"timestamp"`
	// Cwd is the absolute working folder.
	Cwd string `json:"cwd"`
	// Originator names the program that ran the conversation.
	Originator string `json:"originator"`
	// CLIVersion is that program's version.
	CLIVersion string `json:"cli_version"`
	// ModelProvider is the provider of the model, left out by programs that do not record it.
	ModelProvider string `json:"model_provider,omitzero"`
	// Instructions are the user's, from AGENTS.md; nil, written as null, if there are none.
	Instructions *string `json:"instructions"`
	// Git is left out outside a repository.
	Git *GitInfo `json:"git,omitzero"`
	// Kept is what the call chose that began the conversation. The native engine alone writes and reads it.
	Kept *Kept `json:"codex_mcp,omitzero"`
}

// Kept is what an engine keeps of a conversation's calls, so that an hour without a turn, a kill and a restart change
// nothing of it.
type Kept struct {
	// Policy and Sandbox are what turns had when a call last chose: the choice, and for the rest the
	// configuration of then. Codex also has policies with finer rules, which are JSON.
	Policy  ApprovalPolicy `json:"approval_policy"`
	Sandbox SandboxPolicy  `json:"sandbox_policy"`
	// Choices are those of its calls: a wish and no grant.
	Choices Choices `json:"choices,omitzero"`
	// Names are those with which the conversation began.
	Names Names `json:"names,omitzero"`
}

// Names are what a conversation ran with, by the names that the configuration of then gave it. Whoever goes on with it
// looks them up in that of today.
type Names struct {
	Profile  string          `json:"profile,omitzero"`
	Provider string          `json:"model_provider,omitzero"`
	Model    string          `json:"model,omitzero"`
	Effort   ReasoningEffort `json:"model_reasoning_effort,omitzero"`
}

// GitInfo is the CommitHash and the Branch of a repository's HEAD when a conversation started. Members that git
// cannot determine are left out.
type GitInfo struct {
	CommitHash string `json:"commit_hash,omitzero"`
	Branch     string `json:"branch,omitzero"`
	// RepositoryURL is that of the remote origin.
	RepositoryURL string `json:"repository_url,omitzero"`
}

// Compacted says that the history before it was replaced by the summary Message.
type Compacted struct {
	Message string `json:"message"`
	// ReplacementHistory are the items with which the history begins from here on.
	// Programs that make them from the message leave it out.
	ReplacementHistory []json.RawMessage `json:"replacement_history,omitempty"`
}
