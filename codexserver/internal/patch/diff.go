package patch

import (
	"fmt"
	"slices"
	"strings"
)

// edit is a run of lines: kept ones, or ones that are removed and then added.
type edit struct {
	kept         bool
	from, to     int // lines of the old text, from inclusive, to exclusive
	fromNew, end int // lines of the new text
}

// Hunks returns the hunks that change before to after, in the form of [Plan.Changes].
func Hunks(before, after string) string { return unifiedDiff(before, after, 1) }

// unifiedDiff returns the hunks that change before to after, with context lines around
// each change and without a file header.
//
// There are several shortest edits, and clients see which one is chosen. Tests compare the
// choice with that of Codex. No library that was tried makes the same one.
func unifiedDiff(before, after string, context int) string {
	a, b := splitLines(before), splitLines(after)
	var out strings.Builder
	edits := diffLines(a, b)
	for i := 0; i < len(edits); {
		if edits[i].kept {
			i++
			continue
		}
		// A hunk includes kept lines too few to separate it from the next change.
		j := i
		for j+2 < len(edits) && edits[j+1].to-edits[j+1].from <= 2*context {
			j += 2
		}
		writeHunk(&out, a, b, edits[i:j+1], context)
		i = j + 1
	}
	return out.String()
}

func writeHunk(out *strings.Builder, a, b []string, edits []edit, context int) {
	first, last := edits[0], edits[len(edits)-1]
	lead := min(context, first.from, first.fromNew)
	trail := min(context, len(a)-last.to, len(b)-last.end)
	fmt.Fprintf(out, "@@ -%s +%s @@\n",
		lineRange(first.from-lead, last.to+trail), lineRange(first.fromNew-lead, last.end+trail))
	writeLines(out, ' ', a[first.from-lead:first.from])
	for _, e := range edits {
		if e.kept {
			writeLines(out, ' ', a[e.from:e.to])
			continue
		}
		writeLines(out, '-', a[e.from:e.to])
		writeLines(out, '+', b[e.fromNew:e.end])
	}
	writeLines(out, ' ', a[last.to:last.to+trail])
}

// lineRange formats a range of lines, counted from 1, as unified diffs do.
func lineRange(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func writeLines(out *strings.Builder, sign byte, lines []string) {
	for _, line := range lines {
		out.WriteByte(sign)
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// splitLines splits a text after each newline.
func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// diffLines returns edits. Kept and changed ones alternate.
func diffLines(a, b []string) []edit {
	// Lines are compared as numbers.
	ids := map[string]int{}
	number := func(lines []string) []int {
		out := make([]int, len(lines))
		for i, line := range lines {
			id, ok := ids[line]
			if !ok {
				id = len(ids)
				ids[line] = id
			}
			out[i] = id
		}
		return out
	}
	x, y := number(a), number(b)
	head := 0
	for head < len(x) && head < len(y) && x[head] == y[head] {
		head++
	}
	tail := 0
	for tail < len(x)-head && tail < len(y)-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	var edits []edit
	add := func(kept bool, from, to, fromNew, end int) {
		if from == to && fromNew == end {
			return
		}
		if n := len(edits) - 1; n >= 0 && edits[n].kept == kept {
			edits[n].to, edits[n].end = to, end
			return
		}
		edits = append(edits, edit{kept, from, to, fromNew, end})
	}
	add(true, 0, head, 0, head)
	i, j := head, head
	for _, m := range matches(x[head:len(x)-tail], y[head:len(y)-tail]) {
		add(false, i, head+m[0], j, head+m[1])
		i, j = head+m[0]+1, head+m[1]+1
		add(true, i-1, i, j-1, j)
	}
	add(false, i, len(a)-tail, j, len(b)-tail)
	add(true, len(a)-tail, len(a), len(b)-tail, len(b))
	return edits
}

// maxEdits is the longest edit that is searched for. A text that needs more edits is shown
// as replaced.
const maxEdits = 1000

// matches pairs the lines of a longest common subsequence, by Myers' algorithm.
func matches(x, y []int) [][2]int {
	n, m := len(x), len(y)
	if n == 0 || m == 0 {
		return nil
	}
	limit := min(n+m, maxEdits)
	reach := make([]int, 2*limit+2) // furthest x on each diagonal
	var trace [][]int
	for d := 0; d <= limit; d++ {
		trace = append(trace, append([]int(nil), reach[limit-d:limit+d+2]...))
		for k := -d; k <= d; k += 2 {
			i := 0
			if k == -d || k != d && reach[limit+k-1] < reach[limit+k+1] {
				i = reach[limit+k+1]
			} else {
				i = reach[limit+k-1] + 1
			}
			j := i - k
			for i < n && j < m && x[i] == y[j] {
				i, j = i+1, j+1
			}
			reach[limit+k] = i
			if i >= n && j >= m {
				return walkBack(trace, n, m)
			}
		}
	}
	return nil
}

// walkBack follows the trace from the ends of both texts to their beginnings.
func walkBack(trace [][]int, i, j int) [][2]int {
	var pairs [][2]int
	for d := len(trace) - 1; d >= 0; d-- {
		k := i - j
		at := func(k int) int { return trace[d][k+d] }
		fromI, fromJ := 0, 0
		if d > 0 {
			from := k - 1
			if k == -d || k != d && at(k-1) < at(k+1) {
				from = k + 1
			}
			fromI, fromJ = at(from), at(from)-from
		}
		for i > fromI && j > fromJ {
			i, j = i-1, j-1
			pairs = append(pairs, [2]int{i, j})
		}
		i, j = fromI, fromJ
	}
	slices.Reverse(pairs)
	return pairs
}
