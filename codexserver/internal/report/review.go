package report

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/review"
	"github.com/go-json-experiment/json/jsontext"
)

type wireFinding struct {
	Title       string   `json:"title"`
	Body        string   `json:"body"`
	Path        string   `json:"path"`
	StartLine   int      `json:"startLine,omitzero"`
	EndLine     int      `json:"endLine,omitzero"`
	Priority    *int     `json:"priority,omitzero"`
	Confidence  *float64 `json:"confidence,omitzero"`
	OutsideDiff bool     `json:"outsideDiff,omitzero"`
	Error       string   `json:"error,omitzero"`
}

type wireVerdict struct {
	Correct     bool           `json:"correct"`
	Explanation jsontext.Value `json:"explanation"`
	Confidence  *float64       `json:"confidence,omitzero"`
}

func findingsPart(r *review.Result, limit int) part {
	if r == nil {
		r = &review.Result{}
	}
	return listPart(len(r.Findings), false, limit, func(i int) any {
		f := r.Findings[i]
		return wireFinding{f.Title, f.Body, f.Path, f.StartLine, f.EndLine, f.Priority, f.Confidence, f.OutsideDiff, f.Error}
	})
}

// maxExplanation bounds a verdict's explanation, which is never left out, in bytes of
// JSON.
const maxExplanation = 800

func verdictOf(r *review.Result) *wireVerdict {
	if r == nil || r.Verdict == nil {
		return nil
	}
	explanation, _ := textPart(r.Verdict.Explanation, maxExplanation+1).cut(maxExplanation)
	return &wireVerdict{r.Verdict.Correct, explanation, r.Verdict.Confidence}
}
