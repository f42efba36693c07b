package patch_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// patched applies a patch of the file "f", or of the files that it names, and returns what is there afterwards.
func patched(t *testing.T, files map[string]string, text string) (map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	writeTree(t, dir, files)
	plan, err := planOf(dir, text)
	if err == nil {
		err = plan.Apply()
	}
	return readTree(t, dir, dir), err
}

// TestUpdates has updates of files whose lines the patch has a little differently: it changes only what it
// says. The strictest comparison that finds a hunk decides.
func TestUpdates(t *testing.T) {
	for name, tt := range map[string]struct{ file, hunks, want string }{
		"CR LF, replaced":                   {"a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B\n c", "a\r\nB\r\nc\r\n"},
		"CR LF, two for one":                {"a\r\nb\r\n", "@@\n-b\n+1\n+2", "a\r\n1\r\n2\r\n"},
		"CR LF, inserted first":             {"a\r\nb\r\n", "@@\n+0\n a", "0\r\na\r\nb\r\n"},
		"CR LF, appended":                   {"a\r\nb\r\n", "@@\n+c", "a\r\nb\r\nc\r\n"},
		"CR LF, all replaced":               {"a\r\n", "@@\n-a\n+x\n+y", "x\r\ny\r\n"},
		"CR LF, removed":                    {"a\r\nb\r\nc\r\n", "@@\n-b", "a\r\nc\r\n"},
		"CR LF, the patch too":              {"a\r\nb\r\n", "@@\r\n a\r\n-b\r\n+B\r", "a\r\nB\r\n"},
		"CR LF, no newline at the end":      {"a\r\nb", "@@\n-a\n+A\n b", "A\r\nb"},
		"CR LF, appended without one":       {"a\r\nb", "@@\n b\n+c", "a\r\nb\r\nc\r\n"},
		"both ends, each line its own":      {"a\nb\r\nc\nd\r\n", "@@\n a\n-b\n+B\n c\n-d\n+D", "a\nB\r\nc\nD\r\n"},
		"both ends, inserted":               {"a\nb\r\nc\n", "@@\n b\n+n\n c", "a\nb\r\nn\r\nc\n"},
		"a lone CR":                         {"a\rb\nc\n", "@@\n-c\n+C", "a\rb\nC\n"},
		"indentation":                       {"\tif a:\n\t\tb\n\tc\n", "@@\n     if a:\n-        b\n+\t\tB\n     c", "\tif a:\n\t\tB\n\tc\n"},
		"quotes and dashes":                 {"“a” – b\nc\n“d”\n", "@@\n \"a\" - b\n-c\n+C\n \"d\"", "“a” – b\nC\n“d”\n"},
		"blanks at the end":                 {"a  \nb\nc\t\n", "@@\n a\n-b\n+B\n c", "a  \nB\nc\t\n"},
		"blanks at the end of the patch":    {"a\nb\n", "@@\n a  \n-b  \n+B  ", "a\nB  \n"},
		"a no-break space":                  {"a\u00a0b\nc\n", "@@\n a b\n-c\n+C", "a\u00a0b\nC\n"},
		"no newline, a change elsewhere":    {"a\nb\nc", "@@\n-a\n+A", "A\nb\nc"},
		"no newline, the last line stays":   {"a\nb\nc", "@@\n a\n-b\n+B\n c\n*** End of File", "a\nB\nc"},
		"no newline, the last line changes": {"a\nb", "@@\n a\n-b\n+B", "a\nB\n"},
		"no newline, the last line goes":    {"a\nb\nc", "@@\n b\n-c", "a\nb\n"},
		"no newline, a line behind it":      {"a\nb", "@@\n+c", "a\nb\nc\n"},
		"no newline, a line before it":      {"a", "@@\n+0\n a", "0\na"},
		"empty lines at the end":            {"a\n\n\n", "@@\n-a\n+A", "A\n\n\n"},
		"a byte-order mark":                 {"\ufeffa\nb\n", "@@\n-a\n+A\n b", "\ufeffA\nb\n"},
		"a byte-order mark, inserted":       {"\ufeffa\n", "@@\n+0\n a", "\ufeff0\na\n"},
		"a byte-order mark, removed":        {"\ufeffa\nb\n", "@@\n-a", "\ufeffb\n"},
		"a byte-order mark that is added":   {"\ufeffa\n", "@@\n-a\n+\ufeffA", "\ufeffA\n"},
		"a byte-order mark and CR LF":       {"\ufeffa\r\nb\r\n", "@@\n a\n-b\n+B", "\ufeffa\r\nB\r\n"},
		"all lines removed":                 {"a\n", "@@\n-a", ""},
		"an empty file":                     {"", "@@\n+a", "a\n"},
		"blanks behind @@":                  {"a\nb\n", "@@ \t\n a\n-b\n+B", "a\nB\n"},
		"a unified header":                  {"a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+B", "a\nB\n"},
		"a unified header of one line":      {"a\nb\n", "@@ -2 +2 @@\n-b\n+B", "a\nB\n"},
		"a unified header with a function":  {"func f() {\n\tb\n}\n", "@@ -1,3 +1,3 @@ func f() {\n-\tb\n+\tB\n }", "func f() {\n\tB\n}\n"},
		"two unified headers":               {"a\nb\nc\n", "@@ -1 +1 @@\n-a\n+A\n@@ -3,1 +3,1 @@ x\n-c\n+C", "A\nb\nC\n"},
		"a unified header without numbers":  {"a\nb\n", "@@ @@\n a\n-b\n+B", "a\nB\n"},
		"the names of a unified diff":       {"a\nb\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B", "a\nB\n"},
		"lines like such names":             {"-- f\nb\n", "--- f\n+++ g\n b", "++ g\nb\n"},
		"lines like such names, and a hunk": {"-- x\nb\n", "--- x\n+++ f\n@@\n-b\n+B", "++ f\nB\n"},
		"the remark about the newline":      {"a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file", "A\nb"},
		"a line that looks like a header":   {"@@ -1 x\nb\n", "@@ @@ -1 x\n-b\n+B", "@@ -1 x\nB\n"},

		"lines like those of a patch":       {"*** Begin Patch\n@@\n", "@@\n-*** Begin Patch\n-@@\n+*** End Patch\n++\n+-", "*** End Patch\n+\n-\n"},
		"equal before blanks at the end":    {"x \nx\n", "@@\n-x\n+y", "x \ny\n"},
		"blanks at the end before others":   {" x\nx \n", "@@\n-x\n+y", " x\ny\n"},
		"blanks around before punctuation":  {"‘x’\n 'x'\n", "@@\n-'x'\n+y", "‘x’\ny\n"},
		"all plain punctuation":             {"\u2010\u2015\u2212\u2018\u201b\u201c\u201fa\u00a0\u2002\u200a\u202f\u205f\u3000b\n", "@@\n----''\"\"a      b\n+y", "y\n"},
		"additions before a hunk":           {"a\nb\n", "@@\n+c\n@@\n-a\n+1\n@@\n+d", "1\nb\nc\nd\n"},
		"shared after":                      {"a\nb\n", "@@\n-a\n+1\n b\n@@\n-b\n+2\n*** End of File", "1\n2\n"},
		"shared before":                     {"a\nb\nc\n", "@@\n-a\n-b\n+1\n+b\n@@\n b\n-c\n+3\n*** End of File", "1\nb\n3\n"},
		"shared before by one that removes": {"a\nb\nc\nd\n", "@@\n-a\n-b\n@@\n b\n-c\n d\n*** End of File", "d\n"},
		"a blank line that the file lacks":  {"one\ntwo\n", "@@\n-two\n-", "one\n"},
		"such a line, kept":                 {"one\ntwo\n", "@@\n-two\n ", "one\n"},
		"such a line, replaced":             {"one\ntwo\n", "@@\n-two\n-\n+x", "one\nx\n"},
		"such a line, at the end":           {"two\none\ntwo\n", "@@\n-two\n+2\n \n*** End of File", "two\none\n2\n"},
		"a blank line before the hunks":     {"one\n", "\n@@\n-one\n+1", "1\n"},
		"a blank line after the hunks":      {"one\n", "@@\n-one\n+1\n*** End of File\n", "1\n"},
		"the same as the line before":       {"one\ntwo\none\n", "@@ one\n-one\n+1", "one\ntwo\n1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := patched(t, map[string]string{"f": tt.file}, "*** Update File: f\n"+tt.hunks)
			if d := cmp.Diff(map[string]string{"f": tt.want}, got); err != nil || d != "" {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
}

func TestUpdatesRefused(t *testing.T) {
	for name, tt := range map[string]struct{ file, hunks, want string }{
		"no dash before U+2010":      {"a\u200fb\n", "@@\n-a-b\n+y", "does not have"},
		"no blank after U+200A":      {"a\u200bb\n", "@@\n-a b\n+y", "does not have"},
		"no blank before U+2002":     {"a\u2001b\n", "@@\n-a b\n+y", "does not have"},
		"the same line, at the end":  {"a\n", "@@\n-a\n+1\n@@\n-a\n+2\n*** End of File", "two hunks change these lines:\na"},
		"no @@ after the first hunk": {"one\ntwo\n", "@@\n-two\n+2\n*** End of File\n-one\n+1", "line 7: expected a line that begins with @@"},
		"only the line before":       {"one\ntwo\n", "@@ one\n-one\n+1", "does not have these lines in this place:\none"},
		"a missing line before":      {"one\n", "@@ two\n-one\n+1", "does not have these lines in this place:\ntwo"},
	} {
		if _, err := patched(t, map[string]string{"f": tt.file}, "*** Update File: f\n"+tt.hunks); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// TestPartsOfPatches has patches of several files in the ways in which models write them.
func TestPartsOfPatches(t *testing.T) {
	files := map[string]string{"f": "a\n", "binary": "\xff\x00"}
	for name, tt := range map[string]struct {
		text string
		want map[string]string
	}{
		"a move alone":              {"*** Update File: f\n*** Move to: sub/g", map[string]string{"sub/g": "a\n"}},
		"a move alone, then a file": {"*** Update File: f\n*** Move to: g \n*** Add File: h\n+x", map[string]string{"g": "a\n", "h": "x\n"}},
		"a binary that moves":       {"*** Update File: binary\n*** Move to: b2", map[string]string{"f": "a\n", "b2": "\xff\x00"}},
		"empty lines between":       {"\n*** Add File: g\n+x\n\n\n*** Update File: f\n@@\n-a\n+A\n\n*** Add File: h\n+y\n\n", map[string]string{"f": "A\n", "g": "x\n", "h": "y\n"}},
		"an empty line of a file":   {"*** Add File: g\n+x\n\n+y\n\n*** Delete File: f", map[string]string{"g": "x\n\ny\n"}},
		"blanks between":            {"*** Delete File: f\n  \n*** Add File: h\n+y", map[string]string{"h": "y\n"}},
	} {
		got, err := patched(t, files, tt.text)
		if _, ok := tt.want["b2"]; !ok {
			tt.want["binary"] = files["binary"]
		}
		if d := cmp.Diff(tt.want, got); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
	for text, want := range map[string]string{
		"*** Update File: f\n":                             "has no lines",
		"*** Update File: binary\n@@\n-a\n+b":              "is not UTF-8",
		"*** Add File: g\n+x\n\nmore\n*** Add File: h\n+y": "line 5:",
	} {
		if _, err := patched(t, files, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
