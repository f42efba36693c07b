package rollout_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// TestOrdinals continues files whose lines have numbers, and files whose lines have none.
func TestOrdinals(t *testing.T) {
	const stamp = `{"timestamp":"2026-11-25T00:44:05.593Z",`
	long := strings.Repeat("x", 200_000)
	for name, tt := range map[string]struct{ last, want string }{
		"numbers":     {stamp + `"ordinal":13,"type":"event_msg","payload":{"type":"task_complete"}}`, "14 15 17"},
		"a long line": {stamp + `"ordinal":7,"type":"event_msg","payload":{"type":"x","text":"` + long + `"}}`, "8 9 11"},
		"none":        {stamp + `"type":"event_msg","payload":{"type":"x","text":"\",\"ordinal\":3,\"type\":\""}}`, "- - -"},
		"not a line":  {`half`, "- - -"},
		"a word":      {stamp + `"ordinal":"13","type":"event_msg","payload":{}}`, "- - -"},
		"too large":   {stamp + `"ordinal":99999999999999999999,"type":"event_msg","payload":{}}`, "- - -"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rollout.jsonl")
			write := func(flag int, text string) {
				f, err := os.OpenFile(path, flag|os.O_CREATE|os.O_WRONLY, 0o600)
				if err == nil {
					_, err = f.WriteString(text)
				}
				if err != nil || f.Close() != nil {
					t.Fatal(err)
				}
			}
			write(0, stamp+`"ordinal":0,"type":"session_meta","payload":{}}`+"\n"+tt.last+"\n")
			w := rollout.At(path, nil)
			if err := w.Take(func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if i == 2 && !strings.HasPrefix(tt.want, "-") { // another program has written a line
					var last int
					if _, err := fmt.Sscanf(tt.want, "%d", &last); err != nil {
						t.Fatal(err)
					}
					write(os.O_APPEND, fmt.Sprintf(stamp+`"ordinal":%d,"type":"event_msg","payload":{}}`+"\n", last+2))
				}
				if err := w.Event(protocol.AgentMessage{Message: `","type":"`}); err != nil {
					t.Fatal(err)
				}
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(string(b)) {
				if !strings.Contains(line, "agent_message") {
					continue
				}
				number := "-"
				if _, rest, ok := strings.Cut(line, `Z","ordinal":`); ok {
					number, _, _ = strings.Cut(rest, ",")
				}
				got = append(got, number)
				if !strings.HasSuffix(line, `"message":"\",\"type\":\""}}`+"\n") {
					t.Errorf("line %s", line)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("numbers %v, want %s", got, tt.want)
			}
		})
	}
}
