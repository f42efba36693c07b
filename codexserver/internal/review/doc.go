// Package review is everything in a review except the model: the diff as files and lines,
// the task in words, the reader of the answer, and the check that what was found lies in
// the diff. All of it is pure functions of text.
//
// The answer is a JSON object in the form that Codex's own reviewer has:
//
//	{"findings": [{"title", "body", "priority", "confidence_score",
//	    "code_location": {"absolute_file_path", "line_range": {"start", "end"}}}],
//	 "overall_correctness": "patch is correct" or "patch is incorrect",
//	 "overall_explanation", "overall_confidence_score"}
package review
