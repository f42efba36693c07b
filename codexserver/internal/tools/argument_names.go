package tools

import "strings"

// maxArgumentName is how many bytes of an unknown name an error repeats.
const maxArgumentName = 100

// nearest returns the name that was likely meant, or "". It prefers a name that differs
// only in case and separators, then one that begins with the other (sandbox_mode and
// sandbox), then one that ends with the other (reasoning_effort and effort), then the one
// with the fewest edits, at most a third of its length.
func nearest(name string, names []string) string {
	given := letters(name)
	best, least := "", len(name)+1
	for _, n := range names {
		want := letters(n)
		d := distance(given, want)
		switch {
		case d == 0:
			return n
		case len(given) >= 3 && (strings.HasPrefix(given, want) || strings.HasPrefix(want, given)):
			d = 1
		case len(given) >= 5 && len(want) >= 5 && (strings.HasSuffix(given, want) || strings.HasSuffix(want, given)):
			d = 2
		case d > len(want)/3:
			continue
		}
		if d < least {
			best, least = n, d
		}
	}
	return best
}

// letters drops case and separators.
func letters(s string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "", " ", "").Replace(strings.ToLower(s))
}

// distance is the number of bytes to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
