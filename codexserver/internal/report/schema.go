package report

// Schema is the JSON schema of what [Report.JSON] returns, for the outputSchema of a
// tool. A call that fails before it has a turn has the first two members alone.
const Schema = `{
	"type": "object",
	"required": ["threadId", "content"],
	"properties": {
		"threadId": {"type": "string", "description": "For codex-reply."},
		"content": {"type": "string", "description": "The answer."},
		"output": {"description": "The answer as JSON, if output-schema was given."},
		"status": {"enum": ["completed", "failed", "aborted", "waiting", "running"]},
		"model": {"type": "string"},
		"durationMs": {"type": "integer"},
		"usage": {
			"type": "object",
			"description": "Tokens of turn and thread: input, cached, output, reasoning.",
			"additionalProperties": {"type": "object", "additionalProperties": {"type": "integer"}}
		},
		"quota": {
			"type": "object",
			"description": "The account's limits, primary and secondary: usedPercent, windowMinutes, resetsInSeconds.",
			"additionalProperties": {"type": "object", "additionalProperties": {"type": "number"}}
		},
		"plan": {
			"type": "array",
			"items": {"type": "object", "properties": {"step": {"type": "string"}, "status": {"type": "string"}}}
		},
		"changesFrom": {"enum": ["tree", "events"], "description": "tree: changes are what differs on disk. events: only patches are known, not what commands wrote."},
		"changes": {
			"type": "array",
			"description": "Lines as in git diff --numstat, none for binary files.",
			"items": {
				"type": "object",
				"properties": {
					"path": {"type": "string"},
					"from": {"type": "string"},
					"kind": {"enum": ["add", "update", "delete", "rename"]},
					"added": {"type": "integer"},
					"removed": {"type": "integer"}
				}
			}
		},
		"commands": {
			"type": "array",
			"description": "What ran; approvedBy if somebody was asked.",
			"items": {
				"type": "object",
				"properties": {
					"command": {"type": "string"},
					"cwd": {"type": "string"},
					"exitCode": {"type": "integer"},
					"durationMs": {"type": "integer"},
					"approvedBy": {"type": "string"}
				}
			}
		},
		"refused": {
			"type": "array",
			"description": "What was not approved, so not done: kind, what, cwd, why, by, reason.",
			"items": {"type": "object", "additionalProperties": {"type": "string"}}
		},
		"truncated": {
			"type": "object",
			"description": "How many elements, or bytes of content and output, are left out.",
			"additionalProperties": {"type": "integer"}
		}
	}
}`
