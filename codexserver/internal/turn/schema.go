package turn

// Schema is the JSON schema of a [protocol.TurnResult] of a turn, for a tool's outputSchema. The
// result of a call that fails before its turn has only the first two members.
//
// A member has a description only if its name is not clear enough.
const Schema = `{
	"type": "object",
	"required": ["threadId", "content"],
	"properties": {
		"threadId": {"type": "string", "description": "For codex-reply."},
		"content": {"type": "string", "description": "The answer."},
		"output": {"description": "The answer as JSON, by output-schema."},
		"status": {"enum": ["completed", "incomplete", "failed", "aborted", "waiting", "running"]},
		"stopped": {"type": "string", "description": "A spent budget."},
		"model": {"type": "string"},
		"rerouted": {"type": "array"},
		"worktree": {"type": "object", "description": "path, branch"},
		"durationMs": {"type": "integer"},
		"usage": {"type": "object", "description": "Tokens of turn and thread: input, cached, output, reasoning."},
		"plan": {"type": "array", "description": "Each a step and its status."},
		"changesFrom": {"enum": ["tree", "events"], "description": "tree: what differs on disk. events: patches alone."},
		"changes": {
			"type": "array",
			"description": "As git diff --numstat.",
			"items": {
				"type": "object",
				"properties": {
					"path": {"type": "string"},
					"from": {"type": "string"},
					"kind": {"enum": ["add", "update", "delete", "rename"]},
					"added": {"type": "integer"},
					"removed": {"type": "integer"},
					"by": {"enum": ["patch", "command", "other"], "description": "other: unsure."}
				}
			}
		},
		"unknown": {"type": "array", "description": "Not looked at: path, why."},
		"commands": {
			"type": "array",
			"description": "approvedBy: if a question was asked.",
			"items": {
				"type": "object",
				"properties": {
					"id": {"type": "integer"},
					"command": {"type": "string"},
					"cwd": {"type": "string"},
					"exitCode": {"type": "integer"},
					"durationMs": {"type": "integer"},
					"approvedBy": {"type": "string"}
				}
			}
		},
		"refused": {"type": "array", "description": "What was not approved, so not done: kind, what, cwd, why, by, reason."},
		"truncated": {"type": "object", "description": "How much is left out, and where to see it."}
	}
}`

// ShortSchema is for a tool with the same result as another tool, which has [Schema]. It
// names the same members.
const ShortSchema = `{
	"type": "object",
	"description": "The members are those of codex's result.",
	"required": ["threadId", "content"],
	"properties": {
		"threadId": {"type": "string"},
		"content": {"type": "string"},
		"output": {},
		"status": {"type": "string"},
		"stopped": {"type": "string"},
		"model": {"type": "string"},
		"rerouted": {"type": "array"},
		"worktree": {"type": "object"},
		"durationMs": {"type": "integer"},
		"usage": {"type": "object"},
		"plan": {"type": "array"},
		"changesFrom": {"type": "string"},
		"changes": {"type": "array"},
		"unknown": {"type": "array"},
		"commands": {"type": "array"},
		"refused": {"type": "array"},
		"truncated": {"type": "object"}
	}
}`
