package review

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
)

// Schema is the schema of the answer. Providers take it that hold a model to a schema: every member is
// required, and there are no bounds of numbers, which some of them refuse.
const Schema = `{"type": "object", "additionalProperties": false,
"required": ["findings", "overall_correctness", "overall_explanation", "overall_confidence_score"],
"properties": {
	"findings": {"type": "array", "items": {"type": "object", "additionalProperties": false,
		"required": ["title", "body", "priority", "confidence_score", "code_location"],
		"properties": {
			"title": {"type": "string"},
			"body": {"type": "string"},
			"priority": {"type": "integer", "enum": [0, 1, 2, 3]},
			"confidence_score": {"type": "number"},
			"code_location": {"type": "object", "additionalProperties": false,
				"required": ["absolute_file_path", "line_range"],
				"properties": {
					"absolute_file_path": {"type": "string"},
					"line_range": {"type": "object", "additionalProperties": false,
						"required": ["start", "end"],
						"properties": {"start": {"type": "integer"}, "end": {"type": "integer"}}}}}}}},
	"overall_correctness": {"type": "string", "enum": ["patch is correct", "patch is incorrect"]},
	"overall_explanation": {"type": "string"},
	"overall_confidence_score": {"type": "number"}}}`

// answer is what [Schema] describes. An engine may take no schema, so that what is not needed may be missing.
type answer struct {
	Findings []struct {
		Title      string   `json:"title"`
		Body       string   `json:"body"`
		Priority   *int     `json:"priority"`
		Confidence *float64 `json:"confidence_score"`
		Place      struct {
			Path  string `json:"absolute_file_path"`
			Lines struct {
				Start int `json:"start"`
				End   int `json:"end"`
			} `json:"line_range"`
		} `json:"code_location"`
	} `json:"findings"`
	Correctness string   `json:"overall_correctness"`
	Explanation string   `json:"overall_explanation"`
	Confidence  *float64 `json:"overall_confidence_score"`
}

// Limits of the texts of an answer in bytes.
const (
	maxTitle = 400
	maxBody  = 8 << 10
	maxPath  = 1 << 10
)

// Read adds the findings and the verdict of a reviewer's answer to the result, and returns them as a text for
// people, with every control character visible. Values out of range are left out. The paths become relative
// to the repository's top. A finding without a line in the diff is marked, unless the diff was cut and may have
// had its file. Read fails if the answer is not in the form, or with failed, which is why there is none. The result has an
// outcome in any case.
func (t *Task) Read(said string, r *protocol.TurnResult, failed error) (words string, err error) {
	if words, err = said, failed; err == nil {
		words, err = t.read(said, r)
	}
	r.Outcome = protocol.ReviewUnknown
	switch {
	case err != nil:
		r.Why = plain.Short(err.Error(), plain.MaxWords)
	case len(r.Findings) > 0 || r.Verdict != nil && !r.Verdict.Correct:
		r.Outcome = protocol.ReviewFindings
	case r.Status == protocol.StatusIncomplete:
		r.Why = "the answer is incomplete"
	case r.Verdict == nil:
		r.Why = "the reviewer did not say whether the change is correct"
	case t.unread != "":
		r.Why = t.unread
	default:
		r.Outcome = protocol.ReviewPass
	}
	return words, err
}

func (t *Task) read(said string, r *protocol.TurnResult) (words string, err error) {
	var a answer
	if strings.TrimSpace(said) == "" {
		return "", errors.New("the reviewer did not answer")
	}
	// Some models write a code fence, or words, around the object.
	begin, end := strings.IndexByte(said, '{'), strings.LastIndexByte(said, '}')
	if begin < 0 || end < begin {
		return "", errors.New("the answer is not the JSON object that was asked for")
	}
	if err := json.Unmarshal([]byte(said[begin:end+1]), &a); err != nil {
		return "", fmt.Errorf("the answer is not the JSON object that was asked for: %w", err)
	}
	if a.Findings == nil {
		return "", errors.New("the answer has no findings, not even an empty list of them")
	}
	shown := map[string][]Range{}
	for _, file := range t.Files {
		shown[file.Path] = append(shown[file.Path], file.Lines...)
	}
	r.Findings = []protocol.Finding{}
	for _, one := range a.Findings {
		f := protocol.Finding{
			Title: text.Brief(one.Title, maxTitle), Body: text.Brief(one.Body, maxBody),
			Path:       t.relative(text.Brief(one.Place.Path, maxPath)),
			Confidence: score(one.Confidence),
		}
		if one.Priority != nil && *one.Priority >= 0 && *one.Priority <= 3 {
			f.Priority = one.Priority
		}
		if lines := one.Place.Lines; lines.Start > 0 && lines.Start <= lines.End {
			f.StartLine, f.EndLine = lines.Start, lines.End
		}
		lines, known := shown[f.Path]
		inside := slices.ContainsFunc(lines, func(r Range) bool { return f.StartLine <= r.End && f.EndLine >= r.Start })
		f.OutsideDiff = f.Path == "" || f.StartLine == 0 || !inside && (known || !t.Cut)
		r.Findings = append(r.Findings, f)
	}
	a.Explanation = text.Brief(a.Explanation, maxBody)
	if correct := a.Correctness == "patch is correct"; correct || a.Correctness == "patch is incorrect" {
		r.Verdict = &protocol.Verdict{Correct: correct, Explanation: a.Explanation, Confidence: score(a.Confidence)}
	}
	return a.text(r), nil
}

// score returns a number from 0 to 1, or nil for another one.
func score(x *float64) *float64 {
	if x == nil || *x < 0 || *x > 1 {
		return nil
	}
	return x
}

// relative makes a path relative to the repository's top, with slashes. It returns one outside of it unchanged.
func (t *Task) relative(name string) string {
	if name != "" && !filepath.IsAbs(name) && filepath.IsLocal(name) {
		return filepath.ToSlash(filepath.Clean(name))
	}
	real, _ := filepath.EvalSymlinks(t.Root)
	for _, root := range []string{t.Root, real} {
		if rel, ok := paths.Within(name, root); ok && filepath.IsAbs(name) {
			return filepath.ToSlash(rel)
		}
	}
	return name
}

// text returns the findings and the verdict of the result for people.
func (a *answer) text(r *protocol.TurnResult) string {
	var b strings.Builder
	if v := r.Verdict; v == nil {
		b.WriteString("The review has no verdict.")
	} else {
		b.WriteString("Verdict: " + strings.Replace(a.Correctness, "patch", "the change", 1))
		if v.Confidence != nil {
			fmt.Fprintf(&b, " (confidence %.2g)", *v.Confidence)
		}
		b.WriteString(".")
	}
	if a.Explanation != "" {
		b.WriteString(" " + elicit.ShowText(a.Explanation))
	}
	if len(r.Findings) == 0 {
		b.WriteString("\n\nNo findings.")
	}
	for i, f := range r.Findings {
		fmt.Fprintf(&b, "\n\n%d. ", i+1)
		if f.Priority != nil && !strings.HasPrefix(f.Title, "[P") {
			fmt.Fprintf(&b, "[P%d] ", *f.Priority)
		}
		b.WriteString(plain.OneLine(f.Title, 0) + " — " + plain.OneLine(f.Path, 0))
		if f.StartLine > 0 {
			fmt.Fprintf(&b, ":%d-%d", f.StartLine, f.EndLine)
		}
		if f.OutsideDiff {
			b.WriteString(" (outside of the diff)")
		}
		for text := range strings.Lines(elicit.ShowText(f.Body)) {
			b.WriteString("\n   " + strings.TrimSuffix(text, "\n"))
		}
	}
	return b.String()
}
