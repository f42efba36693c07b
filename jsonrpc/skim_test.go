package jsonrpc_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestTooLongOrDeep sends messages that exceed a limit. A request is answered with its id,
// wherever the id is. A notification or a response is not answered.
func TestTooLongOrDeep(t *testing.T) {
	const limit = 2000
	long, deep := strings.Repeat("x", 2*limit), strings.Repeat("[", 600)+strings.Repeat("]", 600)
	for name, tc := range map[string]struct {
		line string // %s is replaced with the part that exceeds the limit
		want string // the id of the answer; "" for none
	}{
		"id first":            {`{"jsonrpc":"2.0","id":7,"method":"x","params":[%s]}`, `7`},
		"id last":             {`{"jsonrpc":"2.0","method":"x","params":[%s] , "id" : "7" }`, `"7"`},
		"escaped":             {`{"\u0069d":"a\"b","method":"x","params":[%s]}`, `"a\"b"`},
		"beyond 2^53":         {`{"id":9007199254740993,"method":"x","params":[%s]}`, `9007199254740993`},
		"other ids within":    {`{"method":"x","params":{"id":1,"a":[%s,{"id":2}],"b":"\",\"id\":3"},"id":4}`, `4`},
		"ids in strings":      {`{"method":"x","params":["\\",%s,"{\"id\":1,"],"id":4}`, `4`},
		"notification":        {`{"jsonrpc":"2.0","method":"x","params":[%s]}`, ``},
		"response to no call": {`{"jsonrpc":"2.0","id":7,"result":[%s]}`, ``},
		"response without id": {`{"jsonrpc":"2.0","error":[%s]}`, ``},
		"neither":             {`{"jsonrpc":"2.0","id":7,"x":[%s]}`, `7`},
		"id twice":            {`{"id":7,"method":"x","id":8,"params":[%s]}`, `null`},
		"id null":             {`{"id":null,"method":"x","params":[%s]}`, `null`},
		"id an object":        {`{"id":{"id":1},"method":"x","params":[%s]}`, `null`},
		"id too long":         {`{"id":"` + strings.Repeat("i", 1500) + `","method":"x","params":[%s]}`, `null`},
		"batch":               {`[{"id":7,"method":"x","params":[%s]}]`, `null`},
		"a bare value":        {`[%s]`, `null`},
	} {
		for what, too := range map[string][2]string{
			"long": {`"` + long + `"`, fmt.Sprintf("message is longer than %d bytes", limit)},
			"deep": {deep, "nesting is deeper than 512 levels"},
		} {
			o := &jsonrpc.Options{MaxMessage: limit}
			if what == "deep" {
				o.MaxMessage = 0
				if name == "id too long" { // this message exceeds no limit
					continue
				}
			}
			t.Run(name+"/"+what, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := newRaw(t, echoMux(), o)
					r.run(context.Background())
					go r.send(fmt.Sprintf(tc.line, too[0]), `{"jsonrpc":"2.0","id":"well","method":"raw"}`)
					if tc.want != "" {
						r.want(`{"jsonrpc":"2.0","id":` + tc.want + `,"error":{"code":-32600,"message":"` + too[1] + `"}}`)
					}
					r.want(`{"jsonrpc":"2.0","id":"well","result":null}`)
				})
			})
		}
	}
}

// TestTooLongAnswer checks, for all transports, that an answer that exceeds a limit fails its
// call.
func TestTooLongAnswer(t *testing.T) {
	ar, bw := io.Pipe()
	br, aw := io.Pipe()
	cr, dw := io.Pipe()
	dr, cw := io.Pipe()
	p1, p2 := jsonrpc.Pipe()
	for name, ends := range map[string][2]jsonrpc.Transport{
		"Lines":  {jsonrpc.Lines(ar, aw, both{ar, aw}), jsonrpc.Lines(br, bw, both{br, bw})},
		"Header": {jsonrpc.Header(cr, cw, both{cr, cw}), jsonrpc.Header(dr, dw, both{dr, dw})},
		"Pipe":   {p1, p2},
	} {
		t.Run(name, func(t *testing.T) {
			a := jsonrpc.NewPeer(ends[0], nil, &jsonrpc.Options{MaxMessage: 100_000})
			b := jsonrpc.NewPeer(ends[1], echoMux(), nil)
			for _, p := range []*jsonrpc.Peer{a, b} {
				go func() { _ = p.Run(context.Background()) }()
			}
			const want = "jsonrpc: answer to echo: message is longer than 100000 bytes (-32600)"
			for range 2 {
				err := a.Call(context.Background(), "echo", text{strings.Repeat("x", 200_000)}, nil)
				if err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
				must(t, a.Call(context.Background(), "echo", text{"x"}, nil))
			}
			_, _ = a.Close(), b.Close()
			<-a.Done()
			<-b.Done()
		})
	}
}
