package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits of what a result says besides the answer. Some hosts show 2 kB of a block.
const (
	maxHints   = 20   // threads that one block names
	maxNotDone = 10   // lines about what was not done; the structured content has all
	maxBrief   = 200  // characters of a status line
	maxName    = 100  // bytes of names and ids, which a result never cuts
	maxTree    = 2000 // bytes of the path of a worktree, as well

	maxText = 45_000 // bytes of JSON of a text; clients since 2026-07-28 do not show longer ones to their model
)

// maxResult returns how many bytes of JSON the answer in a result of the call has at most, and the structured content.
func (c *Call) maxResult() int {
	most := cmp.Or(max(c.table.options.MaxResult, 0), setting.DefaultResult)
	if c.Inbox != nil {
		most = min(most, maxText)
	}
	return most
}

// answer returns the result of a call for its turn, which has ended: the answer, and further blocks with the remarks. A
// turn that fails or is aborted has an error result with the reason.
func (b *begun) answer() *mcptypes.CallToolResult {
	result := b.Result()
	r := &mcptypes.CallToolResult{Content: blocks(result.Texts...), StructuredContent: result.JSON(b.Order.Most)}
	first := []string{hint(result.ThreadID, &result.TurnResult, result.More)}
	lines := slices.Concat(first, notDone(&result), missing(&result))
	// Only the structured content has it, as with Codex; but models of many hosts see only the texts.
	if result.Texts[0] == "" && len(result.Texts) == 1 && result.Content != "" {
		lines = append(lines, result.Content)
	}
	if result.Fails {
		// Claude Code does not show its model the structured content of an error, and shows only the first and the
		// last 5,000 characters of the texts. So this is in the last block, and shorter, without what is before.
		result.Content = ""
		lines, r.IsError = append(lines, string(result.JSON(protocol.MinResult))), new(true)
	}
	forModel(r, lines...)
	return r
}

// hint returns a line that names a thread for the client's model, and says what to call next. Without it a
// model that sees only the texts of a result could not continue the conversation.
// result is what the turn did, or nil before its end. more is true if codex-show has more of the
// answer.
func hint(thread string, result *protocol.TurnResult, more bool) string {
	if result == nil {
		return "[thread " + thread + "; codex-wait waits for it]"
	}
	words := "thread " + thread + "; codex-reply continues it"
	if more {
		words += "; codex-show has the whole answer"
	}
	if changed := pathsOf(result.Changes); changed != "" {
		words += "; changed: " + changed
	}
	return "[" + words + "]"
}

// notDone returns a line for each of the last things that a turn did not do because nobody approved
// them or a policy refuses them, with why unless a remark says it. Models of many hosts see only the texts of a result.
func notDone(result *turn.Result) []string {
	var lines []string
	left := result.Truncated.Refused
	for _, r := range slices.Backward(result.Refused) {
		r.What, _ = elicit.ShowCode(r.What)
		if r.Kind == "patch" || r.Kind == protocol.RefusedFailed {
			r.What = "changes of " + r.What
		}
		r.Why = plain.Brief(strings.TrimPrefix(r.Why, "not run: "))
		line := "N" + strings.TrimPrefix(r.String(), "n") // such as "Not run: `git push` (declined)"
		switch {
		case slices.Contains(lines, line):
		case len(lines) == maxNotDone:
			left++
		default:
			lines = append(lines, line)
		}
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("Earlier refusals that are not listed here: %d.", left))
	}
	slices.Reverse(lines)
	return lines
}

// missing returns a line for each of the first MCP servers that did not start.
func missing(result *turn.Result) (lines []string) {
	for _, m := range result.Missing[:min(len(result.Missing), maxNotDone)] {
		m.Server, _ = elicit.ShowCode(m.Server)
		m.Why = plain.Brief(m.Why)
		lines = append(lines, m.String())
	}
	return lines
}

// interim returns the result of a call whose turn continues.
func (b *begun) interim(status protocol.TurnStatus, text string) *mcptypes.CallToolResult {
	r := structured(short{ThreadID: b.ThreadID(), Content: text, Status: status, Worktree: b.Order.Worktree}, text)
	forModel(r, hint(b.ThreadID(), nil, false))
	return r
}

// still returns the result of a call that ends before its turn: what the turn does and has
// done, and the question that it waits for. It returns nil if the turn has ended.
func (b *begun) still(c *Call) *mcptypes.CallToolResult {
	s, result := b.State(), b.So()
	words := "Still running: " + s.Line() + ". "
	switch asked := c.place() != nil; {
	case s.Status.Ended():
		return nil
	case s.Status == protocol.StatusRunning:
	case asked && c.Background.Ask != nil:
		words = "Still running, and " + s.Line() + ". The client still has the question. "
	case asked:
		words = "Still running, and " + s.Line() + ". codex-wait asks it again. "
	default:
		words = "Still running, and " + s.Line() +
			". A person has to answer it where this server asks, not in this client. "
	}
	result.ThreadID, result.Status = b.ThreadID(), s.Status
	if len(result.Commands)+len(result.Changes) > 0 {
		words += "Until now " + doneUntil(&result)
		if changed := pathsOf(result.Changes); changed != "" {
			words += ": " + changed
		}
		words += ". "
	}
	words += `The turn continues in the background: call codex-wait with threadIds ["` + b.ThreadID() +
		`"] for its result.`
	result.Content = words
	r := b.interim(s.Status, words)
	r.StructuredContent = result.JSON(protocol.MinResult)
	return r
}

// Ended returns the result of a task whose server ended while the task ran, and what it did as
// a line. result is what [turn.Turn.Did] returned last.
func Ended(result protocol.TurnResult) (r *mcptypes.CallToolResult, line string) {
	short := string(result.JSON(protocol.MinResult))
	line = doneUntil(&result)
	result.Content = "The server ended while this task ran. What it did until then remains: " + line +
		". Call codex-reply with threadId " + result.ThreadID + " to continue."
	whole := result.JSON(setting.DefaultResult)
	r = &mcptypes.CallToolResult{Content: blocks(result.Content), StructuredContent: whole, IsError: new(true)}
	forModel(r, short)
	return r, line
}

// doneUntil returns how many commands ran and how many files changed.
func doneUntil(r *protocol.TurnResult) string {
	many := func(n int, noun string) string {
		if n == 1 {
			return "1 " + noun
		}
		return fmt.Sprintf("%d %ss", n, noun)
	}
	commands, files := len(r.Commands)+r.Truncated.Commands, len(r.Changes)+r.Truncated.Changes
	return many(commands, "command") + " ran and " + many(files, "file") + " changed"
}

// Broken returns the result of a call whose tool panicked.
func Broken() *mcptypes.CallToolResult { return failure("", "internal error: the tool panicked") }

// failure returns the result of a call that failed before it had a turn.
func failure(thread, text string) *mcptypes.CallToolResult {
	r := result(thread, text)
	r.IsError = new(true)
	return r
}

// short is the structured content of a call that has no result of a turn.
type short struct {
	ThreadID string              `json:"threadId"`
	Content  string              `json:"content"`
	Status   protocol.TurnStatus `json:"status,omitzero"`
	Worktree *protocol.Worktree  `json:"worktree,omitzero"`
}

// result returns the result of a call about a thread.
func result(thread, text string) *mcptypes.CallToolResult {
	return structured(short{ThreadID: thread, Content: text}, text)
}

// structured returns a result with v as structured content, because some clients show only that to their model, and
// the texts, or else v, as blocks. Structured content came with MCP 2025-06-18. It is also
// sent under earlier versions, as Codex did: clients find the thread's id there.
func structured(v any, texts ...string) *mcptypes.CallToolResult {
	b, _ := json.Marshal(v, jsontext.AllowInvalidUTF8(true)) // texts and numbers always encode
	if texts == nil {
		texts = []string{string(b)}
	}
	return &mcptypes.CallToolResult{Content: blocks(texts...), StructuredContent: b}
}

// blocks returns the texts as blocks. The first is unchanged. Each further one begins with a
// newline, because some clients join the blocks without a separator.
func blocks(texts ...string) []mcptypes.ContentBlock {
	list := mcptypes.Text(texts...)
	for i, text := range texts[1:] {
		list[i+1] = &mcptypes.TextContent{Text: "\n" + text}
	}
	return list
}

// forModel adds a block of lines for the model, if there are any. Some clients join the blocks
// without a separator, and some show only the beginning of each.
func forModel(r *mcptypes.CallToolResult, lines ...string) {
	if len(lines) == 0 {
		return
	}
	r.Content = append(r.Content, &mcptypes.TextContent{
		Annotations: &mcptypes.Annotations{Audience: []mcptypes.Role{mcptypes.RoleAssistant}},
		Text:        "\n" + strings.Join(lines, "\n"),
	})
}

// pathsOf returns the first paths of what has changed, and the number of all if there are more.
func pathsOf(list []protocol.Change) string {
	paths := make([]string, len(list))
	for i, one := range list {
		paths[i] = one.Path
	}
	return plain.Paths(paths)
}
