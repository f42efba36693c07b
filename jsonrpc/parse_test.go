package jsonrpc_test

import (
	"encoding/json"
	"testing"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	lenient := &jsonrpc.Options{LenientVersion: true}
	for _, tt := range []struct {
		text string
		o    *jsonrpc.Options
		want jsonrpc.Message
		err  string
	}{
		{text: `{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}`, want: jsonrpc.Message{ID: mcptypes.IntID(1), Method: "a", Params: json.RawMessage(`[1]`)}},
		{text: `{"jsonrpc":"2.0","method":"a"}`, want: jsonrpc.Message{Method: "a"}},
		{text: `{"jsonrpc":"2.0","id":"x","result":{}}`, want: jsonrpc.Message{ID: mcptypes.StringID("x"), Result: json.RawMessage(`{}`)}},
		{text: `{"jsonrpc":"2.0","id":null,"error":{"code":1}}`, want: jsonrpc.Message{Error: json.RawMessage(`{"code":1}`)}, err: "a response has an id and either a result or an error (-32600)"},
		{text: `{"id":1,"method":"a"}`, o: lenient, want: jsonrpc.Message{ID: mcptypes.IntID(1), Method: "a"}},
		{text: `{"id":1,"method":"a"}`, want: jsonrpc.Message{ID: mcptypes.IntID(1), Method: "a"}, err: `jsonrpc is not "2.0" (-32600)`},
		{text: `[]`, err: "batches are not accepted (-32600)"},
		{text: `{`, err: "not valid JSON at byte 1 (-32700)"},
	} {
		got, err := jsonrpc.Parse([]byte(tt.text), tt.o)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if diff := cmp.Diff(tt.want, got, cmp.Comparer(func(a, b jsonrpc.ID) bool { return a == b })); diff != "" || said != tt.err {
			t.Errorf("%s: %s (-want +got):\n%s", tt.text, said, diff)
		}
	}
}
