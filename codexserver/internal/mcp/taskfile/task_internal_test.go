package taskfile

import (
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/google/go-cmp/cmp"
)

const (
	testID       = "0199a213-81c0-7800-8aa1-bbab2a035a53.ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	testInstance = "ZYXWVUTSRQPONMLKJIHGFEDCBA"
	testFile     = `{"id":"` + testID + `","tool":"codex","created":"2026-11-20T10:00:00Z","updated":"2026-11-20T10:00:01Z",` +
		`"status":"working","message":"running go test","server":{"instance":"` + testInstance + `","pid":7}}`
)

func TestDecode(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	got, err := decode([]byte(testFile))
	must.OK(t, err)
	want := Task{
		ID: testID, Tool: "codex", Created: at, Updated: at.Add(time.Second), Status: modern.TaskStatusWorking, Message: "running go test",
		Server: Server{Instance: testInstance, PID: 7},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if data, err := encode(got); err != nil || string(data) != testFile {
		t.Errorf("%s, %v", data, err)
	}
}

// TestDecodeErrors checks that an error names the faulty member.
func TestDecodeErrors(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{testFile, ``, "EOF"}, {testFile, `null`, "member id"}, {testFile, `[]`, "array"},
		{testFile, testFile + `{}`, "after top-level value"},
		{testFile, testFile[:len(testFile)/2], "EOF"}, {`"id"`, `"ID"`, `"ID"`}, {`"id":`, `"id":"","id":`, `"id"`},
		{testID, `../` + testID, "member id"}, {testID, `a.b`, "member id"}, {`"tool":"codex"`, `"tool":7`, `"/tool"`},
		{`"tool":"codex"`, "\"tool\":\"\xff\"", `"/tool"`}, {`"tool":"codex"`, `"tool":"codex","more":1`, `"more"`},
		{`"2026-11-20T10:00:01Z"`, `"yesterday"`, `"/updated"`},
		{testInstance, `../../../../../../../../../tmp/lock`, "member server.instance"},
		{testInstance, strings.Repeat("A", 129), "member server.instance"},
		{`"pid":7`, `"pid":7.5`, `"/server/pid"`},
		{`"working"`, `"Working"`, "/status"},
		{`"working"`, `"completed"`, "member result"},
		{`"working"`, `"completed","result":[]`, "member result"},
		{`"working"`, `"completed","result":{"a":1,"a":2}`, `"a" within "/result"`},
		{`"working"`, `"failed"`, "member status"},
		{`"working"`, `"working","result":null`, "member result"},
		{`"working"`, `"cancelled","result":{}`, "member result"},
	} {
		file := strings.Replace(testFile, tt.old, tt.new, 1)
		if file == testFile {
			t.Fatalf("%s is not in the file", tt.old)
		}
		if got, err := decode([]byte(file)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\nerror %v, want one of %s; %+v", file, err, tt.want, got)
		}
	}
}
