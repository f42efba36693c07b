package jsonrpc

import (
	"slices"
	"strings"
	"testing"
)

// TestParseFaults checks the words of faults, and that nothing of an earlier message is left.
func TestParseFaults(t *testing.T) {
	var m message
	m.parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":[]}`), dialect{depth: 4})
	if m.kind != kindRequest {
		t.Errorf("a request is %v, %v", m.kind, m.fault)
	}
	m.parse([]byte(`{`), dialect{depth: 4}) // nothing of the request is left
	if m.kind != kindInvalid || !m.id.IsZero() || m.method != nil || m.params != nil {
		t.Errorf("after a request: %+v", m)
	}
	m.parse([]byte(`{}`), dialect{})
	if m.fault.Code != CodeInvalidRequest {
		t.Errorf("depth 0: %v", m.fault)
	}
	for in, want := range map[string]string{`[{"jsonrpc":"2.0","id":1,"method":"a"}]`: "batches are not accepted", `"a"`: "a message is an object"} {
		m = message{}
		if m.parse([]byte(in), dialect{depth: 4}); m.kind != kindInvalid || m.fault.Message != want {
			t.Errorf("%s: kind %v, fault %v", in, m.kind, m.fault)
		}
	}
}

// TestDepth checks that each object and array counts as one level, the message too.
func TestDepth(t *testing.T) {
	for _, tt := range []struct {
		depth int
		in    string
		deep  bool
	}{
		{0, `{}`, true}, {0, `[]`, true}, {0, `1`, false}, {1, `[]`, false}, {1, `[[]]`, true}, {1, `[{}]`, true},
		{1, `{"jsonrpc":"2.0","id":1,"method":"a"}`, false}, {1, `{"jsonrpc":"2.0","id":1,"method":"a","params":[]}`, true},
		{2, `{"jsonrpc":"2.0","id":1,"method":"a","params":[]}`, false}, {2, `{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":[]}}`, true},
	} {
		var m message
		m.parse([]byte(tt.in), dialect{depth: tt.depth})
		if deep := m.fault != nil && strings.HasPrefix(m.fault.Message, "nesting is deeper"); deep != tt.deep {
			t.Errorf("%s with a depth of %d: %v", tt.in, tt.depth, m.fault)
		}
	}
}

// product calls f with every choice of one text of each list, joined.
func product(f func(string), lists ...[]string) {
	var join func(done string, lists [][]string)
	join = func(done string, lists [][]string) {
		if len(lists) == 0 {
			f(done)
			return
		}
		for _, s := range lists[0] {
			join(done+s, lists[1:])
		}
	}
	join("", lists)
}

// TestSmallTexts compares scanner and reference for all texts of three pieces, in several places of a
// message.
func TestSmallTexts(t *testing.T) {
	pieces := strings.Fields(`{ } [ ] : , " "a" "id":1 \ \u00 0 1 9 - + . e E a F g / tru true nul`)
	pieces = append(pieces, "", "\t", "\x00", "\x1f", "\x7f", "é", "\xff", "\xc3")
	for _, place := range [][2]string{
		{"", ""}, {"[", "]"}, {`{"a":`, "}"}, {"{", ":1}"}, {`{"a"`, "}"}, {`{"a":1`, "}"}, {`["`, `"]`}, {`["1234567`, `"]`}, {"[1", "]"}, {`{"jsonrpc":"2.0","method":"x","id":`, "}"},
	} {
		n := pieces
		if testing.Short() && place[0] != `{"a"` {
			n = []string{""}
		}
		product(func(s string) { compareScan(t, slices.Clip([]byte(s))) }, place[:1], n, pieces, pieces, place[1:])
	}
}

// TestBytes compares scanner and reference for every byte in many places, also as the last one of a line.
func TestBytes(t *testing.T) {
	for _, place := range []string{
		`%`, `"%"`, `"1234567%"`, `"12345678%9"`, `"%`, `"1234567%`, `"\%"`, `"\%`, `"\u%000"`, `"\u0%00"`, `"\u000%"`, `"\u00%"`, `"\u%"`, `"\u000%`, `"é%"`, `"\ufffd%\ud800"`,
		`%1`, `-%`, `0%`, `1%`, `1.%`, `1.0%`, `1e%`, `1E%1`, `1e-%`, `t%ue`, `nul%`, `fals%`, `tru%`, `true%`,
		`[%]`, `[1%`, `[1%2]`, `[%`, `{%}`, `{%`, `{"a"%:1}`, `{"a"%1}`, `{"a"%`, `{"a":%}`, `{"a":%`, `{"a":1%}`, `{"a":1%"b":2}`, `{"a":1,%}`, `{"a":[]%`, `{"a":{"b"%1}}`, `{"a":{%b":1}}`, `{"a":{"b":1%"c":2}}`,
	} {
		for c := range 256 {
			compareScan(t, slices.Clip([]byte(strings.Replace(place, "%", string([]byte{byte(c)}), 1))))
		}
		compareScan(t, []byte(strings.Replace(place, "%", "\ufffd", 1)))
	}
}

// TestEnvelopes compares scanner, skimmer and reference for messages with every choice of members.
func TestEnvelopes(t *testing.T) {
	crumb := 0
	product(func(s string) {
		line := []byte("{" + strings.TrimPrefix(s, ",") + "}")
		compareScan(t, line)
		crumb++
		compareSkim(t, line, crumb)
	},
		[]string{"", `,"jsonrpc":"2.0"`, `,"jsonrpc":"\u0032.0"`, `,"jsonrpc":"1.0"`, `,"jsonrpc":2`, `,"jsonrpc":"2.0","jsonrpc":"2.0"`},
		[]string{"", `,"id":1`, `,"id":"a"`, `,"i\u0064":"\"b\\"`, `,"id":null`, `,"id":[1]`, `,"id":1,"id":1`},
		[]string{"", `,"method":"x"`, `,"method":""`, `,"method":1`, `,"method":"x","method":"y"`},
		[]string{"", `,"params":[]`, `,"params":{"id":2,"method":"y"}`, `,"params":null`, `,"params":"x"`, `,"params":[],"params":[]`},
		[]string{"", `,"result":1`, `,"result":1,"result":2`}, []string{"", `,"error":{}`},
		[]string{"", ` , "x" : [ "\"id\":3," ] `})
}

// TestSkimBroken checks that nothing of a message is trusted that is not one whole object, and that an id is not
// taken in part.
func TestSkimBroken(t *testing.T) {
	const good = `{"id":7,"method":"x"}`
	far := strings.Repeat(" ", maxSkimmed-1)
	for in, want := range map[string]string{
		good: "7", " \t\r\n" + good + " \t\r\n ": "7", `{"method":"x","id":` + far[3:] + `123}`: "123",
		good + good: "", good + "{}": "", good + "[]": "", good + " 1 ": "", good + "x": "", good + `"x" `: "", good + "}": "", good + "]": "",
		"1" + good: "", "x " + good: "", `"x"` + good: "", "[" + good + "]": "", `["id":7,"method":"x"]`: "", `{"id":7,"method":"x","params":{}`: "", "[]" + good: "", "}" + good: "", "}{" + good: "", "]{" + good: "", "{" + good: "",
		good[:len(good)-1]: "", `{"method":"x","id":` + far + `12}`: "", `{"method":"x","id":{"a":7}}`: "", `{"method":"x","id":[":7]"]}`: "",
	} {
		for _, crumb := range []int{1, 1 << 20} {
			var s skimmer
			for piece := range slices.Chunk([]byte(in), crumb) {
				_, _ = s.Write(piece)
			}
			if m := s.message(nil); m.id.String() != want || m.kind != kindInvalid {
				t.Errorf("%.60q: kind %d, id %q, want %q", in, m.kind, m.id, want)
			}
		}
	}
}
