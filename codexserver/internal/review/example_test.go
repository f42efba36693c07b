package review_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/internal/review"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A finding that is not in the diff is marked.
func Example() {
	task := review.Task{Root: "/work", Files: review.ParseDiff("diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1 +1,2 @@\n package a\n+var x = 1 / 0\n")}
	var r protocol.TurnResult
	words, err := task.Read(`{"findings":[
		{"title":"Division","body":"By zero.","code_location":{"absolute_file_path":"/work/a.go","line_range":{"start":2,"end":2}}},
		{"title":"Elsewhere","body":"x","code_location":{"absolute_file_path":"/work/b.go","line_range":{"start":9,"end":9}}}],
		"overall_correctness":"patch is incorrect","overall_explanation":"It does not build."}`, &r)
	fmt.Println(words, err)
	// Output:
	// Verdict: the change is incorrect. It does not build.
	//
	// 1. Division — a.go:2-2
	//    By zero.
	//
	// 2. Elsewhere — b.go:9-9 (outside of the diff)
	//    x <nil>
}
