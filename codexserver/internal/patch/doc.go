// Package patch reads and applies the patches that Codex's models write.
//
//	text ──▶ Parse ──▶ Patch ──▶ Patch.Plan(dir) ──▶ Plan ──▶ Plan.Apply
//
// The format:
//
//	*** Begin Patch
//	*** Add File: path            every line follows with +
//	*** Delete File: path
//	*** Update File: path
//	*** Move to: path             optional
//	@@ line that comes before     optional text; a hunk each
//	 kept
//	-removed
//	+added
//	*** End of File               optional: the hunk ends the file
//	*** End Patch
//
// Hunks have no line numbers: they are found by their kept and removed lines,
// each behind the one before. Where nothing equals them, the same is tried
// without blanks at the ends of lines, then without any around them, then with
// typographic dashes, quotes and blanks read as plain ones.
//
// [Patch.Plan] reads files and writes nothing. [Plan.Apply] writes all files or,
// when one cannot be written, none.
package patch
