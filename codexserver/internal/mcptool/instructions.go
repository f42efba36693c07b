package mcptool

import (
	"strings"
)

// Instructions returns a description of the tools for models. It has less than 2,000
// characters, which all clients show completely.
func (t *Table) Instructions() string {
	lines := []string{"Codex works on coding tasks in a folder on this machine, under a sandbox. A person approves what leaves it."}
	for i := range t.tools {
		if words := purposes[t.tools[i].name]; words != "" {
			lines = append(lines, "- "+t.tools[i].name+": "+words)
		}
	}
	lines = append(lines,
		"Continue a conversation by the threadId of its result; it remembers what was said and done before.",
		"A result that says that something was declined or denied means that it was not done. Do not try it in another way; ask the user.",
	)
	return strings.Join(lines, "\n")
}

// purposes say what each tool is for.
var purposes = map[string]string{
	"codex":           "hand over a task. Say what is to be done, where (cwd), and how to check it; the answer comes when it is done. With background it comes at once, for tasks that take longer than a call may.",
	"codex-reply":     "say more in a conversation (threadId): an answer, a correction, the next step.",
	"codex-wait":      "wait for conversations that run in the background, and read their results.",
	"codex-show":      "read the whole diff, transcript, or output of a command of a conversation, where a result is truncated or not enough.",
	"codex-review":    "have changes of a git repository looked at for faults, read-only.",
	"codex-interrupt": "stop what a conversation does now.",
	"codex-list":      "find past conversations.",
	"codex-models":    "find the models that a task can be given to, and their efforts.",
}
