// Package review is a review without the model. It splits the diff into files and lines,
// writes the prompt, parses the answer, and checks that the findings lie in the diff. All
// its functions are pure.
//
// The answer is a JSON object in the form of Codex's own reviewer:
//
//	{"findings": [{"title", "body", "priority", "confidence_score",
//	    "code_location": {"absolute_file_path", "line_range": {"start", "end"}}}],
//	 "overall_correctness": "patch is correct" or "patch is incorrect",
//	 "overall_explanation", "overall_confidence_score"}
package review
