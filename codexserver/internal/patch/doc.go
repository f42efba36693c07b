// Package patch reads and applies the patches that Codex's models write.
//
//	text ──▶ Parse ──▶ Patch ──▶ Patch.Plan(dir) ──▶ Plan ──▶ Plan.Apply
//
// The format:
//
//	*** Begin Patch
//	*** Add File: path            then every line of the file after +
//	*** Delete File: path
//	*** Update File: path
//	*** Move to: path             optional
//	@@ line that comes before     begins a hunk; the text is optional
//	 kept
//	-removed
//	+added
//	*** End of File               optional: the hunk ends the file
//	*** End Patch
//
// Hunks have no line numbers. A hunk is found by its kept and removed lines, after the
// hunk before it. If no lines are equal, the search ignores blanks at the ends of lines,
// then all blanks around lines, and then the difference between typographic and plain
// dashes, quotes and blanks.
//
// [Patch.Plan] reads files and writes none. [Plan.Apply] writes all files or, if one
// cannot be written, none.
package patch
