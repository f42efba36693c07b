// Package review is a review without the model. It splits the diff into files and lines,
// writes the prompt, reads the answer, and checks that the findings lie in the diff. It reads
// no files.
//
// The answer is a JSON object in the form of Codex's own reviewer, see [Schema].
package review
