package apptypes_test

import (
	"encoding/json"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/google/go-cmp/cmp"
)

func TestItem(t *testing.T) {
	for text, want := range map[string]*apptypes.Item{
		`{"type":"agentMessage","id":"1","text":"hi"}`: {ID: "1", Type: "agentMessage", Text: "hi"},
		`{"type":"of tomorrow","id":"2","text":{}}`:    {ID: "2", Type: "of tomorrow"},
		`{"type":"agentMessage","id":"3","text":{}}`:   nil,
		`{"type":"agentMessage","id":4}`:               nil,
		`[]`:                                           nil,
	} {
		var got apptypes.Item
		if err := json.Unmarshal([]byte(text), &got); (err == nil) != (want != nil) {
			t.Errorf("%s: %v", text, err)
		} else if want != nil && !cmp.Equal(*want, got) {
			t.Errorf("%s: %s", text, cmp.Diff(*want, got))
		}
	}
}
