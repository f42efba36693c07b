package jsonrpc

import (
	"encoding/json"
	"testing"
)

// FuzzSplitBatch compares the elements of an array with those that encoding/json finds.
func FuzzSplitBatch(f *testing.F) {
	for _, line := range []string{`[]`, ` [ ] `, `[1]`, `[ {"a":"],["} , [2,[3]]	,"\"" ]`, `[null,true,-1.5e3]`, `{}`, `[1,`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var m message
		if m.parse(line, dialect{depth: 64}); !m.array {
			return
		}
		var want []json.RawMessage
		if err := json.Unmarshal(line, &want); err != nil {
			return // invalid UTF-8 and the like, of which only one of the two is strict
		}
		got, fault := splitBatch(line)
		if (fault != nil) != (len(want) == 0 || len(want) > maxBatch) {
			t.Fatalf("%q: %v", line, fault)
		}
		for i := range got {
			if fault == nil && string(got[i]) != string(want[i]) {
				t.Errorf("%q: element %d is %q, want %q", line, i, got[i], want[i])
			}
		}
	})
}
