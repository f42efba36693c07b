package review_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/review"
)

// A finding that is not in the diff is marked.
func Example() {
	files := review.ParseDiff("diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1 +1,2 @@\n package a\n+var x = 1 / 0\n")
	r, err := review.Parse(`{"findings":[
		{"title":"division","code_location":{"absolute_file_path":"/work/a.go","line_range":{"start":2,"end":2}}},
		{"title":"elsewhere","code_location":{"absolute_file_path":"/work/b.go","line_range":{"start":9,"end":9}}}],
		"overall_correctness":"patch is incorrect","overall_explanation":"it does not build"}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	r.Check(files, false, "/work")
	for _, f := range r.Findings {
		fmt.Println(f.Title, f.Path, f.StartLine, f.OutsideDiff)
	}
	fmt.Println(r.Verdict.Correct, r.Verdict.Explanation)
	// Output:
	// division a.go 2 false
	// elsewhere b.go 9 true
	// false it does not build
}
