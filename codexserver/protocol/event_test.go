package protocol_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestEventsRoundTrip reads events that Codex 0.42.0 sent, at least one of every type, and writes the same again.
func TestEventsRoundTrip(t *testing.T) {
	f, err := os.Open("testdata/events.ndjson")
	must.OK(t, err)
	defer f.Close()
	types := map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m, err := protocol.ParseEvent(lines.Bytes())
		if err != nil {
			t.Errorf("%s: %v", lines.Text(), err)
			continue
		}
		if _, raw := m.(protocol.RawEvent); raw {
			t.Errorf("%s: not a known type", lines.Text())
		}
		types[m.EventType()] = true
		b, err := protocol.AppendEvent(nil, m)
		if err != nil {
			t.Errorf("%s: %v", lines.Text(), err)
			continue
		}
		var want, got any
		must.OK(t, json.Unmarshal(lines.Bytes(), &want))
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		must.Equal(t, "round trip", want, got)
	}
	must.OK(t, lines.Err())
	if len(types) < 25 {
		t.Errorf("only %d types of event in testdata: %v", len(types), types)
	}
}

func TestUnknownEventIsKept(t *testing.T) {
	const in = `{"type":"entered_review_mode","prompt":"p","n":9007199254740993}`
	m, err := protocol.ParseEvent([]byte(in))
	must.OK(t, err)
	out, err := protocol.AppendEvent(nil, m)
	must.OK(t, err)
	must.Equal(t, "the event", in, string(out))
}

func TestEventErrors(t *testing.T) {
	for _, m := range []protocol.EventMsg{protocol.AgentMessageDelta{Delta: "a\xff"}, protocol.AgentMessage{Message: "a\xff"}} {
		if b, err := protocol.AppendEvent([]byte("before"), m); err == nil || string(b) != "before" {
			t.Errorf("%#v: %s, %v", m, b, err)
		}
	}
	for _, in := range []string{`5`, `{}x`, `{"type":5}`, `{"type":"agent_message","message":5}`, `{"type":"agent_message","message":"a","message":"b"}`} {
		if m, err := protocol.ParseEvent([]byte(in)); err == nil {
			t.Errorf("%s: read as %#v", in, m)
		}
	}
}

func TestLinesOfChange(t *testing.T) {
	for _, tt := range []struct {
		name           string
		change         protocol.FileChange
		added, removed int
		diff           string // "" for that of an update
	}{
		{"nothing", protocol.FileChange{}, 0, 0, ""},
		{"an empty file", protocol.FileChange{Add: &protocol.FileContent{}}, 0, 0, ""},
		{"a file", protocol.FileChange{Add: &protocol.FileContent{Content: "a\n\nb\n"}}, 3, 0, "+a\n+\n+b"},
		{"a file without an end of line", protocol.FileChange{Delete: &protocol.FileContent{Content: "a\nb"}}, 0, 2, "-a\n-b\n\\ No newline at end of file"},
		{"an update", protocol.FileChange{Update: &protocol.FileUpdate{UnifiedDiff: "@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n\\ No newline at end of file\n"}}, 2, 1, ""},
	} {
		if diff := tt.change.Diff(); tt.change.Update == nil && diff != tt.diff {
			t.Errorf("%s: %q, want %q", tt.name, diff, tt.diff)
		}
		if added, removed := tt.change.Lines(); added != tt.added || removed != tt.removed {
			t.Errorf("%s: +%d -%d, want +%d -%d", tt.name, added, removed, tt.added, tt.removed)
		}
	}
}
