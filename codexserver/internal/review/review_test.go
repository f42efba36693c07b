package review_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/review"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const sample = `diff --git a/a b.go b/a b.go
index 1..2 100644
--- a/a b.go` + "\t" + `
+++ b/a b.go` + "\t" + `
@@ -1,3 +1,4 @@ func x() {
 one
-two
+2
+diff --git a/evil b/evil
 three
@@ -10 +11,0 @@
-gone
diff --git a/old b/new
similarity index 90%
rename from old
rename to new
--- a/old
+++ b/new
@@ -5,2 +5,2 @@
-x
--- not/a/header
+y
+++ not/a/header
\ No newline at end of file
diff --git a/dead b/dead
deleted file mode 100644
--- a/dead
+++ /dev/null
@@ -1,2 +0,0 @@
-a
-b
diff --git "a/\303\274\t\"" "b/\303\274\t\""
new file mode 100644
--- /dev/null
+++ "b/\303\274\t\""
@@ -0,0 +1 @@
+z
diff --git a/bin b/bin
Binary files a/bin and b/bin differ
diff --git a/cut b/cut
--- a/cut
+++ b/cut
@@ -1,9 +1,9 @@
 half
diff --git a/last b/last
--- a/last
+++ b/last
@@ -1 +1 @@
-a
+b
`

func TestParseDiff(t *testing.T) {
	want := []review.File{
		{Path: "a b.go", Lines: []review.Range{{Start: 1, End: 4}, {Start: 11, End: 12}}},
		{Path: "new", Lines: []review.Range{{Start: 5, End: 6}}},
		{Path: "dead", Lines: []review.Range{{Start: 1, End: 2}}},
		{Path: "ü\t\"", Lines: []review.Range{{Start: 1, End: 1}}},
		{}, // a binary file
		{Path: "cut", Lines: []review.Range{{Start: 1, End: 9}}},
		{Path: "last", Lines: []review.Range{{Start: 1, End: 1}}},
	}
	got := review.ParseDiff(sample)
	must.Equal(t, "the files", want, got, cmpopts.IgnoreFields(review.File{}, "Text"))
	var all strings.Builder
	for _, f := range got {
		all.WriteString(f.Text)
	}
	must.Equal(t, "the texts together", sample, all.String())
}

// TestParseOddDiffs reads diffs, or what looks like one: paths, and the ranges of lines.
func TestParseOddDiffs(t *testing.T) {
	const head, file = "diff --git a/x b/x\n", "--- a/x\n+++ b/x\n"
	for diff, want := range map[string]string{
		"": "",
		head + file + "@@ -3,2 +4,3 @@\n a\n-b\n+c\n+d\n":                        "x[{4 6}]",
		head + file + "@@ -1 +1 @@\n-a\n+b\n+++ c\n--- d\n@@ -9 +9 @@\n-a\n+b\n": "x[{1 1} {9 9}]",
		head + file + "@@ -1,2 +1,2 @@\n-a\n\n+b\n":                              "x[{1 2}]", // an empty line without its space
		"diff --git a/one b/two\n--- a/one\n+++ b/two\n@@ -1 +2 @@\n":            "two[{2 2}]",
		"diff --git a/one b/four\nrename from one\nrename to four\n":             "[]",
		head + `+++ "b/a\\b\101\"\n"` + "\n":                                     "a\\bA\"\n[]",
		head + `+++ "b/\377"` + "\n":                                             "\ufffd[]",
		head + `+++ "b/\777\"` + "\n":                                            `\777\"[]`, // no name of git
		head + file + "@@ -1\n@@ -1 x1 @@\n@@ x1 +1 @@\n@@ -a +1 @@\n@@ -1 +1,a @@\n@@ --1 +1 @@\n@@ -1 +1,-1 @@\n@@ -1 +1,1073741824 @@\n": "x[]",
	} {
		var got strings.Builder
		for _, f := range review.ParseDiff(diff) {
			fmt.Fprintf(&got, "%s%v", f.Path, f.Lines)
		}
		must.Equal(t, diff, want, got.String())
	}
}

// TestSchema checks that the example of the prompt fits the schema, which all providers take: every member is required.
func TestSchema(t *testing.T) {
	schema := must.Get(outputschema.Compile([]byte(review.Schema)))(t)
	prompt, _ := (&review.Task{}).Prompt()
	begin := strings.Index(prompt, "\n{") + 1
	example, _, _ := strings.Cut(prompt[begin:], "\n")
	if _, err := schema.Check(example); err != nil {
		t.Errorf("%s: %v", example, err)
	}
	var r protocol.TurnResult
	if _, err := (&review.Task{}).Read(example, &r, nil); err != nil || len(r.Findings) != 1 || r.Findings[0].EndLine != 12 || r.Verdict == nil {
		t.Errorf("%+v, %v", r, err)
	}
	var closed func(at string, schema map[string]any)
	closed = func(at string, schema map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		if properties != nil && (schema["additionalProperties"] != false || len(required) != len(properties)) {
			t.Errorf("%s: not every member is required, or others may be", at)
		}
		for name, inner := range properties {
			closed(at+"/"+name, inner.(map[string]any))
		}
		if items, ok := schema["items"].(map[string]any); ok {
			closed(at+"/items", items)
		}
	}
	var top map[string]any
	unmarshal(t, review.Schema, &top)
	closed("", top)
}

// TestAnswerIsBounded gives an answer with longer texts than are kept.
func TestAnswerIsBounded(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	var r protocol.TurnResult
	_, err := (&review.Task{}).Read(`{"findings":[{"title":"`+long+`","body":"`+long+`","code_location":{"absolute_file_path":"`+long+`"}}],"overall_correctness":"patch is correct","overall_explanation":"`+long+`"}`, &r, nil)
	must.OK(t, err)
	if f := r.Findings[0]; len(f.Title) != 400+3 || len(f.Body) != 8<<10+3 || len(f.Path) != 1<<10+3 || len(r.Verdict.Explanation) != 8<<10+3 {
		t.Errorf("%d bytes of the title, %d of the body, %d of the path, %d of the explanation", len(f.Title), len(f.Body), len(f.Path), len(r.Verdict.Explanation))
	}
}

// TestOutcome says what a review comes to: it passes only if all of the change was handed over and judged.
func TestOutcome(t *testing.T) {
	const correct, incorrect = `"overall_correctness":"patch is correct"`, `"overall_correctness":"patch is incorrect"`
	finding := `{"title":"t","code_location":{"absolute_file_path":"/r/a.go","line_range":{"start":2,"end":3}}}`
	long := review.File{Path: "long", Text: strings.Repeat("+x\n", 1<<20)}
	for _, tt := range []struct {
		name, answer string
		task         review.Task
		status       protocol.TurnStatus
		outcome      protocol.ReviewOutcome
		why          string
	}{
		{"no finding, correct", `{"findings":[],` + correct + `}`, review.Task{}, "", "pass", ""},
		{"no finding, incorrect", `{"findings":[],` + incorrect + `}`, review.Task{}, "", "findings", ""},
		{"a finding, correct", `{"findings":[` + finding + `],` + correct + `}`, review.Task{}, "", "findings", ""},
		{"a finding, no verdict", `{"findings":[` + finding + `]}`, review.Task{}, "", "findings", ""},
		{"a finding in an incomplete answer", `{"findings":[` + finding + `]}`, review.Task{}, protocol.StatusIncomplete, "findings", ""},
		{"no verdict", `{"findings":[]}`, review.Task{}, "", "unknown", "the reviewer did not say whether the change is correct"},
		{"no answer", "", review.Task{}, "", "unknown", "the reviewer did not answer"},
		{"no JSON", "Looks good to me.", review.Task{}, "", "unknown", "the answer is not the JSON object that was asked for"},
		{"an incomplete answer", `{"findings":[],` + correct + `}`, review.Task{}, protocol.StatusIncomplete, "unknown", "the answer is incomplete"},
		{"changes that could not be read", `{"findings":[],` + correct + `}`, review.Task{Cut: true}, "", "unknown", "the changes were too many to be handed over"},
		{"a file that was not shown", `{"findings":[],` + correct + `}`, review.Task{Files: []review.File{{Path: "a"}, long}}, "", "unknown", "the changes of 1 of 2 files were too long to be handed over"},
		{"a finding in what was shown", `{"findings":[` + finding + `],` + correct + `}`, review.Task{Files: []review.File{long}}, "", "findings", ""},
	} {
		r := protocol.TurnResult{Status: tt.status}
		tt.task.Prompt()
		_, err := tt.task.Read(tt.answer, &r, nil)
		must.Equal(t, tt.name+": the outcome", tt.outcome, r.Outcome)
		must.Equal(t, tt.name+": why", tt.why, r.Why)
		must.Equal(t, tt.name+": it cannot be read", tt.why != "" && r.Findings == nil, err != nil)
	}
}

func TestRead(t *testing.T) {
	const place = `"code_location":{"absolute_file_path":"/r/a.go","line_range":{"start":2,"end":3}}`
	const verdict = `"overall_correctness":"patch is correct","overall_explanation":"Fine."`
	at := func(place string) string {
		return `{"findings":[{"title":"t","code_location":` + place + `}],` + verdict + `}`
	}
	with := func(member string) string { return `{"findings":[{` + member + `,` + place + `}],` + verdict + `}` }
	for _, tt := range []struct{ name, answer, want string }{
		{"nothing found", `{"findings":[],` + verdict + `}`, "correct"},
		{"in a fence", "```json\n{\"findings\":[]," + verdict + "}\n```\n", "correct"},
		{"words around", `Here: {"findings":[],` + verdict + `} Done.`, "correct"},
		{"whole", with(`"title":"t","body":"b","priority":0,"confidence_score":0`), "/r/a.go:2-3 P0 0; correct"},
		{"no priority", with(`"title":"t","priority":null`), "/r/a.go:2-3; correct"},
		{"priority too high", with(`"priority":4`), "/r/a.go:2-3; correct"},
		{"negative priority", with(`"priority":-1`), "/r/a.go:2-3; correct"},
		{"confidence above 1", with(`"confidence_score":1.01`), "/r/a.go:2-3; correct"},
		{"negative confidence", with(`"confidence_score":-0.01`), "/r/a.go:2-3; correct"},
		{"lines in reverse order", at(`{"absolute_file_path":"/x","line_range":{"start":3,"end":2}}`), "/x:0-0; correct"},
		{"line 0", at(`{"absolute_file_path":"/x","line_range":{"start":0,"end":2}}`), "/x:0-0; correct"},
		{"empty finding", `{"findings":[{}],` + verdict + `}`, ":0-0; correct"},
		{"duplicate member", `{"findings":[{"title":"t","title":"u"}],` + verdict + `}`, "not the JSON object"},
		{"another member", `{"findings":[],"more":1,` + verdict + `}`, "correct"},
		{"no verdict", `{"findings":[]}`, "none"},
		{"another verdict", `{"findings":[],"overall_correctness":"LGTM","overall_explanation":"e"}`, "none"},
		{"no findings", `{` + verdict + `}`, "the answer has no findings"},
		{"findings that are null", `{"findings":null,` + verdict + `}`, "the answer has no findings"},
		{"words", "It is fine.", "not the JSON object"},
		{"two answers", `{"findings":[]}{"findings":[]}`, "not the JSON object"},
		{"null", `null`, "not the JSON object"},
		{"braces in reverse order", `}{`, "not the JSON object"},
		{"nothing", " \n", "the reviewer did not answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var r protocol.TurnResult
			_, err := (&review.Task{Root: "/repo"}).Read(tt.answer, &r, nil)
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %s", err, tt.want)
				}
				return
			}
			var got []string
			for _, f := range r.Findings {
				line := fmt.Sprintf("%s:%d-%d", f.Path, f.StartLine, f.EndLine)
				if f.Priority != nil && f.Confidence != nil {
					line += fmt.Sprintf(" P%d %g", *f.Priority, *f.Confidence)
				}
				got = append(got, line)
			}
			switch {
			case r.Verdict == nil:
				got = append(got, "none")
			case r.Verdict.Correct:
				got = append(got, "correct")
			}
			must.Equal(t, "the findings", tt.want, strings.Join(got, "; "))
		})
	}
}

// answered is the answer of a reviewer with one finding.
func answered(t *testing.T, path string, start, end int) string {
	t.Helper()
	name := must.Get(json.Marshal(path))(t)
	return fmt.Sprintf(`{"findings":[{"code_location":{"absolute_file_path":%s,"line_range":{"start":%d,"end":%d}}}]}`, name, start, end)
}

// TestPlaces checks the paths of findings, and whether they lie in the diff.
func TestPlaces(t *testing.T) {
	root := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Skip(err)
	}
	files := review.ParseDiff(sample)
	for _, tt := range []struct {
		path       string
		start, end int
		want       string // the path
		outside    bool
		cut        bool // outside unless the diff was cut
	}{
		{filepath.Join(root, "a b.go"), 4, 4, "a b.go", false, false},
		{filepath.Join(link, "a b.go"), 4, 4, "a b.go", false, false},
		{"a b.go", 5, 10, "a b.go", true, false}, {"./a b.go", 4, 10, "a b.go", false, false}, {"x/../a b.go", 12, 400, "a b.go", false, false},
		{"a b.go", 5, 12, "a b.go", false, false}, // it begins before a hunk
		{"a b.go", 13, 400, "a b.go", true, false}, {"a b.go", 0, 0, "a b.go", true, false}, {"dead", 2, 2, "dead", false, false},
		{"old", 5, 5, "old", true, true}, {"new", 6, 6, "new", false, false}, {"none", 1, 1, "none", true, true}, {"none", 0, 0, "none", true, false},
		{"../a b.go", 1, 1, "../a b.go", true, true},
		{filepath.Join(root+"x", "a b.go"), 1, 1, filepath.Join(root+"x", "a b.go"), true, true},
		{"", 1, 1, "", true, false},
	} {
		for _, cut := range []bool{true, false} {
			var r protocol.TurnResult
			task := review.Task{Root: link, Files: files, Cut: cut}
			if _, err := task.Read(answered(t, tt.path, tt.start, tt.end), &r, nil); err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Path != tt.want || f.OutsideDiff != (tt.outside && !(cut && tt.cut)) {
				t.Errorf("%q %d-%d, cut %t: %+v", tt.path, tt.start, tt.end, cut, f)
			}
		}
	}
}

// TestPrompt checks that a prompt is bounded, names what it leaves out, and begins and ends with the rules.
func TestPrompt(t *testing.T) {
	big := review.File{Path: "big\n.go", Text: strings.Repeat("+x\n", 30_000)}
	task := review.Task{Root: "/r", About: "one commit", Instructions: "locks", Files: []review.File{{Path: "a", Text: "A\n"}, big}, Cut: true}
	for range 1000 {
		task.Files = append(task.Files, review.File{Path: "small", Text: strings.Repeat("+y\n", 1000)})
	}
	p, unread := task.Prompt()
	if len(p) > 250<<10 {
		t.Errorf("%d bytes", len(p))
	}
	for _, part := range []string{"Review a change", "The repository is /r. The change is one commit.\n", "adds:\nlocks\n", "\n<changes>\nA\n+y\n", `- "big\n.go"` + "\n", "more changes than could be read", `"overall_correctness"`} {
		if !strings.Contains(p, part) {
			t.Errorf("it lacks %q", part)
		}
	}
	if n := strings.Count(p, "- \"small\""); n != 299 || !strings.Contains(p, "- and 633 more\n") || unread != "the changes were too many to be handed over" {
		t.Errorf("%d named, and %s", n, unread)
	}
}

// TestText checks that line breaks and control characters are escaped or indented.
func TestText(t *testing.T) {
	for answer, want := range map[string]string{
		`{"findings":[]}`: "The review has no verdict.\n\nNo findings.",
		`{"findings":[],"overall_correctness":"LGTM","overall_explanation":"e"}`:                                                "The review has no verdict. e\n\nNo findings.",
		`{"findings":[],"overall_correctness":"patch is correct"}`:                                                              "Verdict: the change is correct.\n\nNo findings.",
		`{"findings":[{"title":"[P1] t","priority":1}],"overall_correctness":"patch is correct","overall_explanation":"Fine."}`: "Verdict: the change is correct. Fine.\n\n1. [P1] t —  (outside of the diff)",
		`{"findings":[{"title":"a\nb\u001b[2J","body":"one\n2. two","priority":2,"code_location":{"absolute_file_path":"x\u202ey","line_range":{"start":1,"end":2}}}],"overall_correctness":"patch is incorrect","overall_explanation":"No.","overall_confidence_score":0.5}`: "Verdict: the change is incorrect (confidence 0.5). No.\n\n1. [P2] a b\\x1b[2J — x\\u{202e}y:1-2 (outside of the diff)\n   one\n   2. two",
	} {
		if got, err := (&review.Task{}).Read(answer, new(protocol.TurnResult), nil); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}
