package review

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// Check compares the findings with the diff. It makes their paths relative to the
// repository's top, of which roots are the names, and marks findings without a line in
// the diff. If the diff was cut, findings in other files cannot be checked; Check returns
// their number.
func (r *Result) Check(files []File, cut bool, roots ...string) (unknown int) {
	lines := map[string][]Range{}
	for _, f := range files {
		lines[f.Path] = append(lines[f.Path], f.Lines...)
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Path = relative(f.Path, roots)
		ranges, known := lines[f.Path]
		switch {
		case known:
			f.OutsideDiff = !touches(f, ranges)
		case cut && f.Path != "" && f.StartLine > 0:
			unknown++
		default:
			f.OutsideDiff = true
		}
	}
	return unknown
}

// touches reports whether a line of the finding is in one of the ranges.
func touches(f *protocol.Finding, ranges []Range) bool {
	for _, r := range ranges {
		if f.StartLine > 0 && f.StartLine <= r.End && f.EndLine >= r.Start {
			return true
		}
	}
	return false
}

// relative makes a path relative to the root that contains it, with slashes. It returns
// other paths unchanged.
func relative(name string, roots []string) string {
	if name == "" {
		return ""
	}
	if !filepath.IsAbs(name) {
		if slashed := path.Clean(filepath.ToSlash(name)); filepath.IsLocal(filepath.FromSlash(slashed)) {
			return slashed
		}
		return name
	}
	for _, root := range roots {
		if rel, ok := paths.Within(name, root); ok {
			return filepath.ToSlash(rel)
		}
	}
	return name
}

// Text returns the result for people, with every control character visible.
func (r *Result) Text() string {
	var b strings.Builder
	switch {
	case r.Verdict == nil:
		b.WriteString("The review has no verdict.")
	case r.Verdict.Correct:
		b.WriteString("Verdict: the change is correct" + sure(r.Verdict.Confidence) + ".")
	default:
		b.WriteString("Verdict: the change is incorrect" + sure(r.Verdict.Confidence) + ".")
	}
	if r.Verdict != nil && r.Verdict.Explanation != "" {
		b.WriteString(" " + elicit.ShowText(r.Verdict.Explanation))
	}
	if len(r.Findings) == 0 {
		b.WriteString("\n\nNo findings.")
	}
	for i, f := range r.Findings {
		fmt.Fprintf(&b, "\n\n%d. ", i+1)
		if f.Priority != nil && !strings.HasPrefix(f.Title, "[P") {
			fmt.Fprintf(&b, "[P%d] ", *f.Priority)
		}
		b.WriteString(line(f.Title) + " — " + line(f.Path))
		if f.StartLine > 0 {
			fmt.Fprintf(&b, ":%d-%d", f.StartLine, f.EndLine)
		}
		if f.OutsideDiff {
			b.WriteString(" (outside of the diff)")
		}
		if f.Error != "" {
			b.WriteString(" (faulty: " + line(f.Error) + ")")
		}
		for text := range strings.Lines(elicit.ShowText(f.Body)) {
			b.WriteString("\n   " + strings.TrimSuffix(text, "\n"))
		}
	}
	for _, words := range r.Problems {
		b.WriteString("\n\n" + elicit.ShowText(words))
	}
	return b.String()
}

func sure(confidence *float64) string {
	if confidence == nil {
		return ""
	}
	return fmt.Sprintf(" (confidence %.2g)", *confidence)
}

// line returns a text as one line.
func line(text string) string { return elicit.OneLine(text, 0) }
