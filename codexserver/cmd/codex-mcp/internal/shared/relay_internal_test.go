package shared

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestSent keeps requests, and nothing else that a client may send.
func TestSent(t *testing.T) {
	var open sync.Map
	for line := range strings.Lines(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"id":7,"method":"no","requestId":{}}}
{"jsonrpc":"2.0","method":"b","params":{"deep":{"requestId":1},"requestId":"q"}}
{"jsonrpc":"2.0","id" : 2 , "result":{"method":"no"}}

[{"jsonrpc":"2.0","id":3,"method":"c"},{"jsonrpc":"2.0","id":4,"method":"d"}]
{"jsonrpc":"2.0","id":"x\"}","method":"h","params":[{"requestId":1}]}
{"jsonrpc":"2.0","id":13,"method":"an open message"
{"jsonrpc":"2.0","id":5,"method":"x"}
{"jsonrpc":"2.0","id":6,"method":"x"}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":[6]}
{"jsonrpc":"2.0","method":"notifications/cancelled"}
{"jsonrpc":"2.0","method":"notifications/other","params":{"requestId":6}}
{"jsonrpc":"2.0","id":14,"method":"without an end"}`) {
		sent(&open, []byte(line))
	}
	var got []string
	for id := range open.Range {
		got = append(got, fmt.Sprint(id))
	}
	slices.Sort(got)
	must.Equal(t, "result", []string{`"x\"}"`, "1", "14", "6"}, got)
}
