package protocol

import (
	"sort"

	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MinResult is the least limit of [TurnResult.Fit], in bytes of JSON.
const MinResult = 4096

// maxExplanation bounds a verdict's explanation, which is never left out, in bytes of JSON.
const maxExplanation = 800

// shares is how finely [TurnResult.Fit] divides the limit.
const shares = 256

// Fit shortens the result until its JSON has at most limit bytes; a limit below [MinResult] means that.
// The longest lists and texts lose elements and bytes, which Truncated counts: first changes, last commands and
// refusals, and the beginnings of texts stay. Output, which cannot be cut, is left out as a whole, also if it is not
// JSON. Fit does not change the elements of lists. The members that it never cuts must be short.
func (r *TurnResult) Fit(limit int) {
	limit = max(limit, MinResult)
	if r.Output != nil {
		r.Output = encode(r.Output)
	}
	if r.Output != nil && !encode(TurnResult{Output: r.Output}).IsValid() {
		r.Output = nil
	}
	if r.Verdict != nil {
		short := *r.Verdict
		short.Explanation = text.HeadJSON(short.Explanation, maxExplanation)
		r.Verdict = &short
	}
	see := r.Truncated.See
	r.seeIfCut(see)
	if len(encode(r)) <= limit {
		return
	}
	// No member may take more than a share of the limit: the largest with which all fit.
	cut := func(i int) TurnResult { return r.cut(limit-i*limit/shares, see) }
	*r = cut(sort.Search(shares, func(i int) bool { return len(encode(cut(i))) <= limit }))
}

// seeIfCut sets where the whole can be read, if something is left out.
func (r *TurnResult) seeIfCut(see string) {
	if r.Truncated.See = ""; r.Truncated != (Truncated{}) {
		r.Truncated.See = see
	}
}

// JSON returns the result as a JSON object of at most limit bytes, see [TurnResult.Fit]. It does not
// change r.
func (r *TurnResult) JSON(limit int) []byte {
	fit := *r
	fit.Fit(limit)
	return encode(fit)
}

// encode returns v as JSON. It cannot fail: numbers are finite, JSON values are checked before, and
// bytes that are not UTF-8 become U+FFFD.
func encode(v any) jsontext.Value {
	b, _ := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	return b
}

// cut returns a result with what fits of each member into room.
func (r TurnResult) cut(room int, see string) TurnResult {
	left := &r.Truncated
	kept := text.HeadJSON(r.Content, room)
	left.Content += len(r.Content) - len(kept)
	r.Content = kept
	if len(r.Output) > room {
		left.Output += len(r.Output)
		r.Output = nil
	}
	kept = text.Tail(r.Check.Output, room/2) // as JSON, a byte of what is shown is two at most
	left.Check += len(r.Check.Output) - len(kept)
	r.Check.Output = kept
	r.Findings = some(r.Findings, false, room, &left.Findings)
	r.Plan = some(r.Plan, false, room, &left.Plan)
	r.Changes = some(r.Changes, false, room, &left.Changes)
	r.Unknown = some(r.Unknown, false, room, &left.Unknown)
	r.Commands = some(r.Commands, true, room, &left.Commands)
	r.Refused = some(r.Refused, true, room, &left.Refused)
	r.Missing = some(r.Missing, false, room, &left.Missing)
	r.seeIfCut(see)
	return r
}

// some returns the first elements of a list, or the last ones, that fit into room. It adds to left how many do not.
func some[T any](list []T, last bool, room int, left *int) []T {
	n := 0
	for room -= len("[]"); n < len(list); n++ {
		next := list[n]
		if last {
			next = list[len(list)-1-n]
		}
		if room -= len(encode(next)) + len(","); room < 0 {
			break
		}
	}
	*left += len(list) - n
	if last {
		return list[len(list)-n:]
	}
	return list[:n]
}
