package protocol

import (
	"math"
	"slices"

	"github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MinResult is the least limit of [TurnResult.Fit], in bytes of JSON.
const MinResult = 4096

// maxExplanation bounds a verdict's explanation, which is never left out, in bytes of JSON.
const maxExplanation = 800

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
	fixed := *r
	fixed.Content, fixed.Output, fixed.Findings, fixed.Plan = "", nil, nil, nil
	fixed.Changes, fixed.Unknown, fixed.Commands, fixed.Refused = nil, nil, nil, nil
	const most = math.MaxInt
	fixed.Truncated = Truncated{most, most, most, most, most, most, most, most, see}
	room := limit - len(encode(fixed)) - len(`"output":,"findings":,"plan":,"unknown":,`)
	left := &r.Truncated
	parts := []part{
		textPart(&r.Content, &left.Content, limit),
		{len(r.Output), func(room int) {
			if len(r.Output) > room {
				left.Output += len(r.Output)
				r.Output = nil
			}
		}},
		listPart(&r.Findings, &left.Findings, false, limit),
		listPart(&r.Plan, &left.Plan, false, limit),
		listPart(&r.Changes, &left.Changes, false, limit),
		listPart(&r.Unknown, &left.Unknown, false, limit),
		listPart(&r.Commands, &left.Commands, true, limit),
		listPart(&r.Refused, &left.Refused, true, limit),
	}
	each := share(parts, room)
	for _, p := range parts {
		p.cut(each)
	}
	r.seeIfCut(see)
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

// part is a member that can be cut.
type part struct {
	size int            // in bytes of JSON; it need not be exact if it exceeds the limit
	cut  func(room int) // leaves what fits into room
}

// share returns how many bytes each part may take. If all fit, that is the size of the
// largest. Otherwise the small parts stay whole and the others share the rest evenly.
func share(parts []part, room int) (each int) {
	sizes := make([]int, len(parts))
	for i, p := range parts {
		sizes[i] = p.size
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		each = room / (len(sizes) - i)
		if size > each {
			return each
		}
		room -= size
	}
	return max(each, sizes[len(sizes)-1])
}

// listPart is a list that loses elements at its end, or at its beginning if tail is true. It measures the
// elements until they exceed limit.
func listPart[T any](list *[]T, left *int, tail bool, limit int) part {
	var sizes []int // of the elements, of those that stay first
	whole := len("[]")
	for i := 0; i < len(*list) && whole <= limit; i++ {
		k := i
		if tail {
			k = len(*list) - 1 - i
		}
		size := len(encode((*list)[k])) + 1
		sizes = append(sizes, size)
		whole += size
	}
	return part{whole, func(room int) {
		used, n := len("[]"), 0
		for n < len(sizes) && used+sizes[n] <= room {
			used += sizes[n]
			n++
		}
		*left += len(*list) - n
		if tail {
			*list = (*list)[len(*list)-n:]
		} else {
			*list = (*list)[:n]
		}
	}}
}

// textPart is a text that loses its end.
func textPart(s *string, left *int, limit int) part {
	return part{text.SizeJSON((*s)[:min(len(*s), limit)]), func(room int) {
		kept := text.HeadJSON(*s, room)
		*left += len(*s) - len(kept)
		*s = kept
	}}
}
