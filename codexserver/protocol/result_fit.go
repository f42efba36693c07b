package protocol

import (
	"math"
	"slices"
	"sort"

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
		(&cutText{text: &short.Explanation, left: new(int)}).cut(maxExplanation)
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
		&cutText{&r.Content, &left.Content, len(quote(r.Content[:min(len(r.Content), limit)]))},
		&cutValue{&r.Output, &left.Output},
		newCutList(&r.Findings, &left.Findings, false, limit),
		newCutList(&r.Plan, &left.Plan, false, limit),
		newCutList(&r.Changes, &left.Changes, false, limit),
		newCutList(&r.Unknown, &left.Unknown, false, limit),
		newCutList(&r.Commands, &left.Commands, true, limit),
		newCutList(&r.Refused, &left.Refused, true, limit),
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

func quote(s string) []byte {
	b, _ := jsontext.AppendQuote(nil, s) // bytes that are not UTF-8 become U+FFFD
	return b
}

// part is a member that can be cut.
type part interface {
	// size returns the size in bytes of JSON. It need not be exact if it exceeds the limit.
	size() int
	// cut leaves what fits into room.
	cut(room int)
}

// share returns how many bytes each part may take. If all fit, that is the size of the
// largest. Otherwise the small parts stay whole and the others share the rest evenly.
func share(parts []part, room int) (each int) {
	sizes := make([]int, len(parts))
	for i, p := range parts {
		sizes[i] = p.size()
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

// cutList is a list that loses elements at its end, or at its beginning if tail is true.
type cutList[T any] struct {
	list  *[]T
	left  *int
	tail  bool
	sizes []int // of the elements, of those that stay first
	bytes int
}

// newCutList measures the elements until they exceed limit.
func newCutList[T any](list *[]T, left *int, tail bool, limit int) part {
	l := &cutList[T]{list: list, left: left, tail: tail, bytes: len("[]")}
	for i := 0; i < len(*list) && l.bytes <= limit; i++ {
		k := i
		if tail {
			k = len(*list) - 1 - i
		}
		size := len(encode((*list)[k])) + 1
		l.sizes = append(l.sizes, size)
		l.bytes += size
	}
	return l
}

func (l *cutList[T]) size() int { return l.bytes }

func (l *cutList[T]) cut(room int) {
	used, n := len("[]"), 0
	for n < len(l.sizes) && used+l.sizes[n] <= room {
		used += l.sizes[n]
		n++
	}
	*l.left += len(*l.list) - n
	if l.tail {
		*l.list = (*l.list)[len(*l.list)-n:]
	} else {
		*l.list = (*l.list)[:n]
	}
}

// cutText is a text that loses its end.
type cutText struct {
	text  *string
	left  *int
	bytes int // of what the limit allows
}

func (t *cutText) size() int { return t.bytes }

func (t *cutText) cut(room int) {
	if len(*t.text) <= room && len(quote(*t.text)) <= room {
		return
	}
	// The length of the quoted text grows with the text.
	n := sort.Search(min(len(*t.text), room), func(n int) bool { return len(quote((*t.text)[:n+1])) > room })
	kept := text.Head(*t.text, n)
	*t.left += len(*t.text) - len(kept)
	*t.text = kept
}

// cutValue is a JSON value that is kept or left out as a whole.
type cutValue struct {
	value *jsontext.Value
	left  *int
}

func (v *cutValue) size() int { return len(*v.value) }

func (v *cutValue) cut(room int) {
	if len(*v.value) > room {
		*v.left += len(*v.value)
		*v.value = nil
	}
}
