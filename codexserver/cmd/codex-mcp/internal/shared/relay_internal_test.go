package shared

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnanswered counts requests, of both directions.
func TestUnanswered(t *testing.T) {
	var u unanswered
	for line := range strings.Lines(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"id":7,"method":"no","requestId":{}}}
{"method":"b","id":"x\"}","params":{"deep":{"requestId":1},"requestId":"q"}}
{"id" : 2 , "result":{"method":"no"}}

[{"id":3,"method":"c"},{"id":4,"error":{"id":9}}]
{"id":10,"method":"f"} {"id":11,"method":"g"}
{"id":12,"method":"h","params":[{"requestId":1}]}
{"id":13,"method":"an open message"
{"id":5,"method":"x"}
{"id":6,"method":"x"}
{"method":"notifications/cancelled","params":{"requestId":5}}
{"method":"notifications/cancelled","params":[6]}
{"method":"notifications/other","params":{"requestId":6}}
{"id":6,"method":"twice","id":7}
{"id":8,"method":` + "\"\xff\"" + `,"params":{"requestId":9}}
{"id":{"id":1},"method":""}
{"id":14,"method":"without an end"}`) {
		u.sent([]byte(line))
	}
	for _, line := range []string{`{"id":2,"result":{}}`, `{"id":8,"result":{}}`, `{"id":14,"error":{}}`, `{"id":1,"method":"elicitation/create"}`, `{"id":"b","error":{}}`, `{"method":"n"}`} {
		u.received([]byte(line))
	}
	if diff := cmp.Diff(`["x\"}" 1 12 6 7]`, fmt.Sprint(u.all())); diff != "" {
		t.Error(diff)
	}
}

// FuzzUnanswered checks that any line can be followed.
func FuzzUnanswered(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"id":"\"","result":{"id":2}}`, `[{"id":1,"method":"x"}]`, `]}{"a":1}`, `{"id":1,"params":{"requestId":2},"method":"n"}`, "{\n}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var open unanswered
		open.sent(line)
		if n := len(open.all()); n > 1 {
			t.Errorf("%d requests in a line", n)
		}
		open.received(line)
	})
}
