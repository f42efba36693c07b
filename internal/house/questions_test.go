package house_test

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestDocsQuestions checks that the sections which docs/use/questions.md names have the words that
// answer its questions. A section ends at the next heading.
func TestDocsQuestions(t *testing.T) {
	all := map[string]page{}
	for _, p := range pages(t) {
		all[p.file] = p
	}
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	rows := regexp.MustCompile(`(?m)^\d+\. .*\]\((\S+)#(\S+)\): "(.*)"$`).FindAllStringSubmatch(read(t, "docs/use/questions.md"), -1)
	if len(rows) < 40 {
		t.Errorf("%d questions", len(rows))
	}
	for _, row := range rows {
		p := all[path.Join("docs/use", row[1])]
		text := fence.ReplaceAllStringFunc(read(t, p.file), func(block string) string { // a # there is no heading
			return strings.ReplaceAll(block, "#", "")
		})
		headings := heading.FindAllStringIndex(text, -1)
		found := false
		for i, name := range p.anchors() {
			if name == row[2] {
				end := len(text)
				if i+1 < len(headings) {
					end = headings[i+1][0]
				}
				found = strings.Contains(words(text[headings[i][0]:end]), words(row[3]))
			}
		}
		if !found {
			t.Errorf("%s#%s does not have %q", row[1], row[2], row[3])
		}
	}
}
