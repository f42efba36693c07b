package house_test

import (
	"strings"
	"testing"
)

// TestDocsQuestions checks that users find the answers to questions in two clicks: README.md leads to the page, and the section
// has the words. Each line of testdata/questions.txt is a question, its section and the words. A section ends at the next heading.
func TestDocsQuestions(t *testing.T) {
	all := map[string]page{}
	for _, p := range pages(t) {
		all[p.file] = p
	}
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	n := 0
	for line := range strings.Lines(read(t, "internal/house/testdata/questions.txt")) {
		n++
		cells := strings.Split(strings.TrimSpace(line), " | ")
		file, anchor, _ := strings.Cut(cells[1], "#")
		if file != "README.md" && !strings.Contains(all["README.md"].text, "]("+file) {
			t.Errorf("README.md does not lead to %s", file)
		}
		text := fence.ReplaceAllStringFunc(read(t, file), func(block string) string { // a # there is no heading
			return strings.ReplaceAll(block, "#", "")
		})
		headings := heading.FindAllStringIndex(text, -1)
		found := false
		for i, name := range all[file].anchors() {
			if name == anchor {
				end := len(text)
				if i+1 < len(headings) {
					end = headings[i+1][0]
				}
				found = strings.Contains(words(text[headings[i][0]:end]), cells[2])
			}
		}
		if !found {
			t.Errorf("%s does not have %q, which answers %q", cells[1], cells[2], cells[0])
		}
	}
	if n < 40 {
		t.Errorf("%d questions", n)
	}
}
