package tools

import (
	"sort"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Texts returns the text blocks of a result.
func Texts(r *mcptypes.CallToolResult) []string {
	var texts []string
	for _, b := range r.Content {
		if t, ok := b.(*mcptypes.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return texts
}

// short is the structured content of a call that has no result of a turn.
type short struct {
	ThreadID string              `json:"threadId"`
	Content  string              `json:"content"`
	Status   protocol.TurnStatus `json:"status,omitzero"`
	Worktree *protocol.Worktree  `json:"worktree,omitzero"`
}

// result returns the texts as blocks, and also as structured content, because some clients
// show only that to their model. Structured content came with MCP 2025-06-18. It is also
// sent under earlier versions, as Codex did: clients find the thread's id there.
func (s short) result(texts ...string) *mcptypes.CallToolResult {
	s.Content = joined(texts)
	return structured(s, texts...)
}

// structured returns a result with v as structured content, and the texts, or else v, as blocks.
func structured(v any, texts ...string) *mcptypes.CallToolResult {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return failure("", "internal error: "+err.Error())
	}
	if texts == nil {
		texts = []string{string(b)}
	}
	return &mcptypes.CallToolResult{Content: blocks(texts...), StructuredContent: b}
}

// result is [short.result] of a thread.
func result(thread string, texts ...string) *mcptypes.CallToolResult {
	return short{ThreadID: thread}.result(texts...)
}

// quoted returns the size of a text as JSON.
func quoted(s string) int {
	b, _ := jsontext.AppendQuote(nil, s) // the error reports invalid UTF-8, which becomes U+FFFD
	return len(b)
}

// fit returns the longest beginning of a text that has at most most bytes of JSON.
func fit(s string, most int) string {
	if quoted(s) <= most {
		return s
	}
	return text.Head(s, sort.Search(len(s), func(n int) bool { return quoted(text.Head(s, n+1)) > most }))
}

// failure returns the result of a call that failed before it had a turn.
func failure(thread, text string) *mcptypes.CallToolResult {
	r := result(thread, text)
	r.IsError = new(true)
	return r
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

// How much a result has of what it never cuts: of names and ids, and of the path of a worktree, in bytes.
const maxName, maxTree = 100, 2000

// facts returns what a turn did that ended with an error. Claude Code does not show its model
// the structured content of an error, and shows only the first and the last 5,000 characters
// of the texts. So this is in the last block, and shorter.
func facts(did protocol.TurnResult) string {
	did.Content = "" // the blocks before have it
	return string(did.JSON(protocol.MinResult))
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

// joined joins the texts with empty lines.
func joined(texts []string) string {
	if len(texts) == 1 {
		return texts[0] // without a copy, since it may be long
	}
	return strings.Join(texts, "\n\n")
}

// room is how long a result may be.
type room struct {
	most  int  // bytes of JSON of the answer, and of the structured content
	shows bool // codex-show has the rest
}

// room returns the room of a result whose longest text has at most maxText bytes of JSON. 0
// is no limit of its own.
func (t *Table) room(maxText int) room {
	r := room{most: t.options.maxResult(), shows: t.Has("codex-show")}
	if maxText > 0 {
		r.most = min(r.most, maxText)
	}
	return r
}

// form is what the result of a turn must look like.
type form struct {
	room   room
	schema *outputschema.Schema // of the answer, or nil
}

// maxBrief is how many characters a status line has at most.
const maxBrief = 200

// cut shortens the text to most bytes of JSON, with a note where to read the whole text.
func (f *form) cut(s string, most int, t *thread.Thread) string {
	if quoted(s) <= most {
		return s
	}
	note := "\n\n[cut: " + f.whole(t.Info().RolloutPath) + "]"
	return fit(s, most-quoted(note)+len(`""`)) + note
}

// whole says where to read an answer that is cut. Path is that of the rollout, or "".
func (f *form) whole(path string) string {
	switch {
	case path != "" && f.room.shows:
		return "the whole answer is in " + path + ", and codex-show has it, in the transcript"
	case path != "":
		return "the whole answer is in " + path
	case f.room.shows:
		return "codex-show has the whole answer, in the transcript"
	}
	return "the answer is longer than limits.result"
}
