package shared

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// read returns the messages in lines that arrive in pieces of a size.
func read(lines []byte, size int) (found []string) {
	r := reader{each: func(m message) { found = append(found, fmt.Sprintf("%s %s %s", m.method, m.id, m.requestID)) }}
	for len(lines) > 0 {
		n := min(size, len(lines))
		r.read(lines[:n])
		lines = lines[n:]
	}
	return found
}

func TestReader(t *testing.T) {
	lines := []byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"id":7,"method":"no","requestId":{}}}
{"method":"b","id":"x\"}","params":{"deep":{"requestId":4},"requestId":"q"}}
{"id" : 2 , "result":{"method":"no"}}

[{"id":3,"method":"c"},{"id":4,"error":{"id":9}},{"method":"d","params":[{"requestId":1}]}]
{"id":10,"method":"f"} {"id":11,"method":"g"}
{"id":12,"method":"h","params":[{"requestId":1}]}
{"id":13,"method":"an open message"
{"id":"an open string
]]}{"id":5,"method":"e"}
{"method":"notifications/cancelled","params":{"requestId":-1}}
{"id":{"id":1},"method":""}
`)
	want := []string{"a 1 ", `b "x\"}" "q"`, " 2 ", "h 12 ", "notifications/cancelled  -1", "  "}
	for size := 1; size <= len(lines); size += 1 + size/8 {
		if diff := cmp.Diff(want, read(lines, size)); diff != "" {
			t.Fatalf("pieces of %d (-want +got):\n%s", size, diff)
		}
	}
}

// FuzzReader compares the reader with encoding/json, for one whole object, and checks that the
// size of the pieces has no effect.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"id":"\"","result":{"id":2}}`, `[{"id":1,"method":"x"}]`, `]}{"a":1}`, `{"id":1,"params":{"requestId":2},"method":"n"}`, "{\n}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got := read(line, len(line)+1)
		if diff := cmp.Diff(read(line, 1), got); diff != "" {
			t.Fatalf("whole and in bytes:\n%s", diff)
		}
		var m map[string]json.RawMessage
		if bytes.ContainsAny(line, "\n\\") || bytes.Count(line, []byte("id")) != 1 || json.Unmarshal(line, &m) != nil || m["id"] == nil || len(m["id"]) > 100 {
			return
		}
		var compact bytes.Buffer
		if json.Compact(&compact, m["id"]) != nil || compact.String() != string(m["id"]) || compact.Bytes()[0] == '{' || compact.Bytes()[0] == '[' {
			return
		}
		var id string
		r := reader{each: func(m message) { id = string(m.id) }}
		r.read(append(bytes.Clone(line), '\n'))
		if id != string(m["id"]) {
			t.Errorf("%s: id %q, want %q", line, id, m["id"])
		}
	})
}
