package tools

import (
	"strings"
)

// Instructions returns a description of the tools for models. It has less than 2,000
// characters, which all clients show completely.
func (t *Table) Instructions() string {
	lines := []string{"These tools give coding tasks to an agent that works in a folder on this machine, under a sandbox. A person approves what leaves it."}
	for i := range t.tools {
		if words := purpose(t.tools[i].name); words != "" {
			lines = append(lines, "- "+t.tools[i].name+": "+words)
		}
	}
	lines = append(lines,
		"Continue a conversation by the threadId of its result; it remembers what was said and done before.",
		"A result that says that something was declined or denied means that it was not done. Do not try it in another way; ask the user.",
	)
	return strings.Join(lines, "\n")
}

// purpose says what a tool is for, "" for one that its description alone explains.
func purpose(tool string) string {
	switch tool {
	case "codex":
		return "hand over a task. Say what is to be done, where (cwd), and how to check it; the answer comes when it is done. With background it comes at once, for tasks that take longer than a call may."
	case "codex-reply":
		return "say more in a conversation (threadId): an answer, a correction, the next step."
	case "codex-wait":
		return "wait for conversations that run in the background, and read their results."
	case "codex-show":
		return "read the whole diff, transcript, or output of a command of a conversation, where a result is truncated or not enough."
	case "codex-review":
		return "have changes of a git repository looked at for faults, read-only."
	case "codex-interrupt":
		return "stop what a conversation does now."
	case "codex-list":
		return "find past conversations."
	case "codex-models":
		return "find the models that a task can be given to, and their efforts."
	}
	return ""
}
