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
// Empty lines between files, a file that only moves, and the header of a unified diff in the place of @@
// are read, too: models write them.
//
// Hunks have no line numbers. A hunk is found by its kept and removed lines, after the hunk before it. If no lines are
// equal, the search ignores blanks at the ends of lines, then all blanks around lines, and then the difference between
// typographic and plain dashes, quotes and blanks. What a patch keeps stays as it is in the file: the text of a line,
// its end, a byte-order mark, a missing newline behind the last line. An added line has the end of its neighbour. A
// file that moves keeps its mode.
//
// [Patch.Plan] reads files and writes none. [Plan.Apply] writes all files or, if one cannot be written, none.
package patch
