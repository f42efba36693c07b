package approval

import (
	"slices"

	"github.com/codexmcp/codexmcp/elicit"
)

// Decision is how a question ended, and who decided.
type Decision struct {
	elicit.Outcome
	// By is who decided. A question that nobody answered in time has the place
	// where it stood last.
	By Decider
	// Remarks say to the caller of the tool why the question could not be
	// answered where it should have been, in sentences. None is usual.
	Remarks []string
}

// isAnswer reports whether somebody decided: the place was able to ask, and the
// question was not withdrawn from it.
func isAnswer(out elicit.Outcome) bool {
	return out.ForCaller() == "" && out.Reason != elicit.ReasonInterrupted
}

// stricter reports whether a is the stricter decision.
func stricter(a, b elicit.Decision) bool {
	order := []elicit.Decision{elicit.ApprovedForSession, elicit.Approved, elicit.Denied, elicit.Abort}
	return slices.Index(order, a) > slices.Index(order, b)
}

// limited returns what the question allows the outcome to be. An outcome made by
// hand may hold any word, and an approval that was not offered.
func limited(q *elicit.Question, out elicit.Outcome) elicit.Outcome {
	switch {
	case !out.Decision.Valid():
		out.Decision = elicit.Denied
	case q.Once && out.Decision == elicit.ApprovedForSession:
		out.Decision = elicit.Approved
	}
	return out
}
