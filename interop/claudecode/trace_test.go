package main

import (
	"strings"
	"testing"
)

func TestModern(t *testing.T) {
	const (
		version  = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
		meta     = `"_meta":{` + version + `}`
		discover = `t < {"id":"server-discover-probe-1","method":"server/discover","params":{` + meta + `}}
t > {"id":"server-discover-probe-1","result":{"resultType":"complete","supportedVersions":["2026-07-28"]}}
`
		call   = `t < {"id":1,"method":"tools/call","params":{"name":"codex","_meta":{` + version + `,"progressToken":7}}}` + "\n"
		answer = `t > {"id":1,"result":{"resultType":"complete"}}` + "\n"
	)
	for _, tt := range []struct{ name, trace, fails string }{
		{"whole", discover + call + `t > {"method":"notifications/progress","params":{"progressToken":7}}` + "\n" + answer, ""},
		{"a second process takes the same ids", discover + call + answer + discover + call + `t > {"method":"notifications/progress","params":{"progressToken":7}}` + "\n" + answer, ""},
		{"nothing", "", "no answered"},
		{"discovery refused", `t < {"id":1,"method":"server/discover","params":{` + meta + `}}
t > {"id":1,"error":{"code":-32601,"message":"no"}}
`, "refuses"},
		{"fallen back", discover + `t < {"id":1,"method":"initialize"}` + "\n", "fell back"},
		{"another version", discover + `t < {"id":1,"method":"tools/call","params":{}}` + "\n", "another version"},
		{"a request from the server", discover + `t > {"id":1,"method":"elicitation/create"}` + "\n", "a request"},
		{"cancelled by the server", discover + `t > {"method":"notifications/cancelled","params":{"requestId":1}}` + "\n", "cancels"},
		{"progress after the answer", discover + call + answer + `t > {"method":"notifications/progress","params":{"progressToken":7}}` + "\n", "after the answer"},
		{"an event after the answer", discover + call + answer + `t > {"method":"codex/event","params":{"_meta":{"requestId":1}}}` + "\n", "after the answer"},
		{"two answers", discover + call + answer + answer, "no request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, err := parse(tt.trace)
			if err != nil {
				t.Fatal(err)
			}
			err = w.modern()
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%v, want %q", err, tt.fails)
			}
		})
	}
}
