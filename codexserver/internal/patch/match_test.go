package patch_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/google/go-cmp/cmp"
)

// TestMatch checks which lines of a file the hunks of an update change. The strictest comparison
// that finds a hunk decides, and hunks that change the same line are refused.
func TestMatch(t *testing.T) {
	const eof = "\n*** End of File"
	for name, tt := range map[string]struct{ file, hunks, want string }{
		"equal before blanks at the end":    {"x \nx", "\n@@\n-x\n+y", "x \ny"},
		"blanks at the end before others":   {" x\nx ", "\n@@\n-x\n+y", " x\ny"},
		"blanks around before punctuation":  {"‘x’\n 'x'", "\n@@\n-'x'\n+y", "‘x’\ny"},
		"all plain punctuation":             {"\u2010\u2015\u2212\u2018\u201b\u201c\u201fa\u00a0\u2002\u200a\u202f\u205f\u3000b", "\n@@\n----''\"\"a      b\n+y", "y"},
		"no dash before U+2010":             {"a\u200fb", "\n@@\n-a-b\n+y", "does not have"},
		"no blank after U+200A":             {"a\u200bb", "\n@@\n-a b\n+y", "does not have"},
		"no blank before U+2002":            {"a\u2001b", "\n@@\n-a b\n+y", "does not have"},
		"additions before a hunk":           {"a\nb", "\n@@\n+c\n@@\n-a\n+1\n@@\n+d", "1\nb\nc\nd"},
		"the same line, at the end":         {"a", "\n@@\n-a\n+1\n@@\n-a\n+2" + eof, "two hunks change these lines:\na"},
		"shared after":                      {"a\nb", "\n@@\n-a\n+1\n b\n@@\n-b\n+2" + eof, "1\n2"},
		"shared before":                     {"a\nb\nc", "\n@@\n-a\n-b\n+1\n+b\n@@\n b\n-c\n+3" + eof, "1\nb\n3"},
		"shared before by one that removes": {"a\nb\nc\nd", "\n@@\n-a\n-b\n@@\n b\n-c\n d" + eof, "d"},
		"a blank line that the file lacks":  {"one\ntwo", "\n@@\n-two\n-", "one"},
		"the same, kept":                    {"one\ntwo", "\n@@\n-two\n ", "one"},
		"the same, replaced":                {"one\ntwo", "\n@@\n-two\n-\n+x", "one\nx"},
		"the same, at the end":              {"two\none\ntwo", "\n@@\n-two\n+2\n " + eof, "two\none\n2"},
		"a blank line before the hunks":     {"one", "\n\n@@\n-one\n+1", "1"},
		"a blank line after the hunks":      {"one", "\n@@\n-one\n+1" + eof + "\n", "1"},
		"no @@ after the first hunk":        {"one\ntwo", "\n@@\n-two\n+2" + eof + "\n-one\n+1", "line 7: expected a line that begins with @@"},
		"no lines":                          {"one", "", "line 3: the update of \"f\" has no lines"},
		"the same as the line before":       {"one\ntwo\none", "\n@@ one\n-one\n+1", "one\ntwo\n1"},
		"only the line before":              {"one\ntwo", "\n@@ one\n-one\n+1", "does not have these lines in this place:\none"},
		"a missing line before":             {"one", "\n@@ two\n-one\n+1", "does not have these lines in this place:\ntwo"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeTree(t, dir, map[string]string{"f": tt.file + "\n"})
			p, err := patch.Parse("*** Begin Patch\n*** Update File: f" + tt.hunks + "\n*** End Patch")
			if err == nil {
				var plan *patch.Plan
				if plan, err = p.Plan(patch.Folder{Path: dir}, dir); err == nil {
					err = plan.Apply()
				}
			}
			if err != nil {
				if tt.want == "" || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %s", err, tt.want)
				}
				return
			}
			got, err := os.ReadFile(filepath.Join(dir, "f"))
			if diff := cmp.Diff(tt.want+"\n", string(got)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestHunks checks that the hunks of a diff say what changes: with them the text before becomes the
// text after.
func TestHunks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func() string {
		var b strings.Builder
		for range rnd.IntN(12) {
			b.WriteString([]string{"a\n", "b\n", "c\n"}[rnd.IntN(3)])
		}
		return b.String()
	}
	texts := [][2]string{{"a\nb\na\n", "a\n"}, {"", "a\n"}, {"a\n", ""}, {strings.Repeat("a\nb\n", 600), strings.Repeat("c\nd\n", 600)}}
	for range 3000 {
		texts = append(texts, [2]string{random(), random()})
	}
	for _, text := range texts {
		hunks := patch.Hunks(text[0], text[1])
		before, at := strings.SplitAfter(text[0], "\n"), 0
		var after strings.Builder
		for line := range strings.Lines(hunks) {
			rest := line[1:]
			switch line[0] {
			case '@':
				var from, count int
				if n, _ := fmt.Sscanf(line, "@@ -%d,%d", &from, &count); n == 1 || count > 0 {
					from-- // counted from 1, but for no lines, which follow a line
				}
				after.WriteString(strings.Join(before[at:from], ""))
				at = from
				continue
			case '+':
				after.WriteString(rest)
				continue
			case ' ':
				after.WriteString(rest)
			}
			if before[at] != rest {
				t.Fatalf("%q to %q: line %d is not %q:\n%s", text[0], text[1], at, rest, hunks)
			}
			at++
		}
		after.WriteString(strings.Join(before[at:], ""))
		if after.String() != text[1] {
			t.Fatalf("%q becomes %q and not %q by:\n%s", text[0], after.String(), text[1], hunks)
		}
	}
}

// TestParse checks which texts are no patch, and which line is wrong.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"more\n*** Add File: b\n+x\n*** End Patch":                                "invalid patch: line 1: the first line must be",
		"*** Begin Patch\n*** Add File: b\n+x":                                    "invalid patch: line 3: the last line must be",
		"*** Begin Patch\n*** Add File: b\n+x\n*** Rename File: b\n*** End Patch": "invalid patch: line 4: \"*** Rename File: b\" is not one of",
		"<<EOF\nmore\n*** Add File: b\n+x\n*** End Patch\nEOF":                    "invalid patch: line 2: the first line must be",
		"<<EOF\n*** Begin Patch\n*** Add File: b\n+x\nEOF":                        "invalid patch: line 4: the last line must be",
		"<<EOF\n*** Begin Patch\n*** Rename File: b\n*** End Patch\nEOF":          "invalid patch: line 3: ",
		"<<EOF\n*** Begin Patch\n*** Add File: b\n+x\n*** End Patch\nPATCH":       "invalid patch: line 1: ",
		"<<EOF\nEOF": "invalid patch: line 1: ",
		"<<EOF\n*** Begin Patch\n*** End Patch\nEOF": "",
	} {
		switch p, err := patch.Parse(text); {
		case want == "" && (err != nil || !p.IsEmpty()), want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
