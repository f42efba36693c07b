package tools

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/internal/report"
	"github.com/codexmcp/codexmcp/mcptypes"
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

// facts returns a block for the model that says what a turn did that ended with an
// error. Claude Code hands its model the structured content of other results, but of an
// error the texts alone, and of these the first and the last 5,000 characters: the block
// is the last one, and shorter.
func facts(did report.Report) *mcptypes.TextContent {
	did.Content = "" // is in the blocks before
	return &mcptypes.TextContent{
		Annotations: &mcptypes.Annotations{Audience: []mcptypes.Role{mcptypes.RoleAssistant}},
		Text:        string(did.JSON(report.MinLimit)),
	}
}

// joined returns the texts apart by an empty line.
func joined(texts []string) string {
	if len(texts) == 1 {
		return texts[0] // which may be long
	}
	return strings.Join(texts, "\n\n")
}

// maxResult bounds the structured content of a result, in bytes.
func (c *Call) maxResult() int {
	most := cmp.Or(c.options.MaxResult, report.DefaultLimit)
	if c.MaxText > 0 {
		most = min(most, c.MaxText)
	}
	return most
}

// Cut returns the words within a bound of runes, as valid UTF-8.
func Cut(words string, most int) string {
	n := 0
	for i := range words { // which may be long
		if n++; n > most {
			return strings.ToValidUTF8(words[:i], "\uFFFD") + "…"
		}
	}
	return strings.ToValidUTF8(words, "\uFFFD")
}

// maxBrief bounds words for a status line, in runes.
const maxBrief = 200

// brief returns the first line of the words, within bounds.
func brief(words string) string {
	words, _, _ = strings.Cut(strings.TrimSpace(words), "\n")
	return Cut(words, maxBrief)
}

// cut returns the text within so many bytes of JSON, and then says where the whole text
// is. 0 means no bound.
func (j *Job) cut(text string, most int) string {
	if most == 0 || len(quote(nil, text)) <= most {
		return text
	}
	note := "\n\n[cut: codex-show has the whole answer, in the transcript]"
	if path := j.thread.Info().RolloutPath; path != "" {
		note = "\n\n[cut: the whole answer is in " + path + ", and codex-show has it, in the transcript]"
	}
	// The longest beginning that fits, by halves.
	low, high := 0, len(text)
	for low < high {
		middle := (low + high + 1) / 2
		if len(quote(nil, text[:middle]+note)) <= most {
			low = middle
		} else {
			high = middle - 1
		}
	}
	for low > 0 && !utf8.RuneStart(text[low]) {
		low--
	}
	return text[:low] + note
}
