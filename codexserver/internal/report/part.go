package report

import (
	"slices"
	"sort"

	utf8text "github.com/codexmcp/codexmcp/internal/text"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// part is a member that can be cut.
type part interface {
	// size returns the size in bytes. It need not be exact if it exceeds the limit of
	// the report.
	size() int
	// cut returns what fits into room, and how much is left out.
	cut(room int) (v jsontext.Value, omitted int)
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

// list is a part with elements.
type list struct {
	items [][]byte
	total int
	bytes int
	tail  bool // cut from the front
}

// listPart encodes elements until they exceed limit.
func listPart(n int, tail bool, limit int, item func(i int) any) part {
	l := &list{total: n, bytes: len("[]"), tail: tail}
	for k := range n {
		i := k
		if tail {
			i = n - 1 - k
		}
		b := encode(item(i))
		l.items = append(l.items, b)
		if l.bytes += len(b) + 1; l.bytes > limit {
			break
		}
	}
	return l
}

func (l *list) size() int { return l.bytes }

func (l *list) cut(room int) (jsontext.Value, int) {
	used, n := len("[]"), 0
	for n < len(l.items) && used+len(l.items[n])+1 <= room {
		used += len(l.items[n]) + 1
		n++
	}
	kept := l.items[:n]
	if l.tail {
		kept = slices.Clone(kept)
		slices.Reverse(kept)
	}
	out := append(make([]byte, 0, used), '[')
	for i, item := range kept {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, ']'), l.total - n
}

// text is a part that is a string.
type text struct {
	all    string
	quoted []byte // as much of it as the limit allows
}

func textPart(s string, limit int) part { return &text{s, quote(s[:min(len(s), limit)])} }

func (t *text) size() int { return len(t.quoted) }

func (t *text) cut(room int) (jsontext.Value, int) {
	if len(t.quoted) <= room {
		return t.quoted, 0
	}
	// The length of the quoted text grows with the text.
	n := sort.Search(min(len(t.all), room), func(n int) bool { return len(quote(t.all[:n+1])) > room })
	kept := utf8text.Head(t.all, n)
	return quote(kept), len(t.all) - len(kept)
}

func quote(s string) []byte {
	b, _ := jsontext.AppendQuote(nil, s) // bytes that are not UTF-8 become U+FFFD
	return b
}

// value is a part that is kept or left out as a whole.
type value struct{ raw jsontext.Value }

func outputPart(raw jsontext.Value) part {
	if raw == nil || json.Unmarshal(encode(wire{Output: raw}), new(wire)) != nil {
		return &value{} // it is missing or not JSON
	}
	return &value{encode(raw)}
}

func (v *value) size() int { return len(v.raw) }

func (v *value) cut(room int) (jsontext.Value, int) {
	if len(v.raw) > room {
		return nil, len(v.raw)
	}
	return v.raw, 0
}
