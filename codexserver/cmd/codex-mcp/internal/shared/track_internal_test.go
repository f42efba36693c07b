package shared

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// longest is the longest line in these tests.
const longest = 200

// pieces returns the lines of a text that arrives in pieces of a size.
func pieces(text []byte, size int) (found []string) {
	l := lines{each: func(line []byte) { found = append(found, string(line)) }, most: longest}
	for len(text) > 0 {
		n := min(size, len(text))
		l.read(text[:n])
		text = text[n:]
	}
	return found
}

// TestMessages checks what is found of a message, in pieces of any size.
func TestMessages(t *testing.T) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"id":7,"method":"no","requestId":{}}}
{"method":"b","id":"x\"}","params":{"deep":{"requestId":4},"requestId":"q"}}
{"id" : 2 , "result":{"method":"no"}}

[{"id":3,"method":"c"},{"id":4,"error":{"id":9}},{"method":"d","params":[{"requestId":1}]}]
{"id":10,"method":"f"} {"id":11,"method":"g"}
{"id":12,"method":"h","params":[{"requestId":1}]}
{"id":13,"method":"an open message"
{"id":"an open string
]]}{"id":5,"method":"e"}
{"method":"notifications/cancelled","params":{"requestId":-1}}
{"method":"notifications/cancelled","params":[-1]}
{"id":6,"method":"twice","id":7}
{"id":8,"method":` + "\"\xff\"" + `,"params":{"requestId":9}}
{"id":{"id":1},"method":""}
{"id":14,"method":"without an end"}`)
	want := []string{`1 "a" `, `"x\"}" "b" `, "2  ", `12 "h" `, ` "notifications/cancelled" -1`, ` "notifications/cancelled" `, `7 "twice" `, "8 \"\xff\" ", `{"id":1} "" `}
	for size := 1; size <= len(text); size += 1 + size/8 {
		var got []string
		for _, line := range pieces(text, size) {
			m := read([]byte(line))
			var cancelled string
			if id, ok := m.cancelled(); ok {
				cancelled = id.String()
			}
			if one := fmt.Sprintf("%s %s %s", string(m.ID), string(m.Method), cancelled); one != "  " {
				got = append(got, one)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("pieces of %d (-want +got):\n%s", size, diff)
		}
	}
}

// TestOverlongLine has a line that is too long between two others.
func TestOverlongLine(t *testing.T) {
	most := strings.Repeat("x", longest)
	text := []byte("a\nx" + most + "\n" + most + "\nb\n")
	for size := 1; size <= len(text); size++ {
		if diff := cmp.Diff([]string{"a", most, "b"}, pieces(text, size)); diff != "" {
			t.Fatalf("pieces of %d: %s", size, diff)
		}
	}
}

// FuzzLines checks that the size of the pieces has no effect, and that read takes any line.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"id":"\"","result":{"id":2}}`, `[{"id":1,"method":"x"}]`, `]}{"a":1}`, `{"id":1,"params":{"requestId":2},"method":"n"}`, "{\n}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := pieces(text, len(text)+1)
		if diff := cmp.Diff(pieces(text, 1), got); diff != "" {
			t.Fatalf("whole and in bytes:\n%s", diff)
		}
		var whole []string
		for line := range bytes.Lines(text) {
			if cut, ok := bytes.CutSuffix(line, []byte("\n")); ok && len(cut) <= longest {
				whole = append(whole, string(cut))
			}
		}
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Fatal(diff)
		}
		var open unanswered
		for _, line := range got {
			open.sent([]byte(line))
			open.received([]byte(line))
		}
	})
}
