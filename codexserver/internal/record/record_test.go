package record_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestAutomatic finds what clients answered by themselves in a log.
func TestAutomatic(t *testing.T) {
	const line = `{"event":"decided","time":"2026-11-20T11:28:31Z","kind":"command","decision":"denied","by":"page","automatic":"The client \"a\" declined %d ms after the question"}` + "\n"
	log := "half a line\n" + fmt.Sprintf(line, 2) + `{"decision":"approved","by":"client"}` + "\n" + fmt.Sprintf(line, 3)
	want := []string{`2026-11-20 11:28:31: The client "a" declined 3 ms after the question (denied, by page)`}
	must.Equal(t, "the lines", want, record.Automatic([]byte(log), 3))
}

// TestStamp takes lines that another process wrote: its time and its principal do not count.
func TestStamp(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	const made = `{"event":"decided","time":"2020-01-01T00:00:00Z","decisionId":"x-1","threadId":"t","principal":"eve","kind":"command","decision":"approved","by":"client","rule":7,"feedback":"é"}`
	const stamped = `{"event":"decided","time":"2026-01-02T02:04:05Z","decisionId":"ann/x-1","threadId":"t","principal":"ann","kind":"command","decision":"approved","by":"client","rule":7,"feedback":"é"}`
	for _, tt := range []struct{ from, to, want string }{
		{"", "", stamped}, {`"client"`, `""`, "! no decision"}, {`"approved"`, `""`, "! no decision"},
		{`"decided"`, `"begins"`, "! one of another event"},
		{`"decided"`, `"other"`, "! no event"}, {`{"event":"decided",`, `{`, "! no event"},
		{`"rule":7`, `"rules":7`, "! not a line of the record"},
		{`"rule":7`, `"rule":7,"rule":8`, "! not a line of the record"},
		{`"t",`, `"t"`, "! not a line of the record"},
		{`"decisionId":"x-1",`, ``, strings.Replace(stamped, `"decisionId":"ann/x-1",`, "", 1)},
		{made, `{"event":"ends","time":"2020-01-01T00:00:00Z","decisionId":"x-1","threadId":"t","principal":"eve","exit":0}`, `{"event":"ends","time":"2026-01-02T02:04:05Z","decisionId":"ann/x-1","threadId":"t","principal":"ann","exit":0}`},
		{"\u00e9", "\xff", strings.Replace(stamped, "\u00e9", "\ufffd", 1)},
	} {
		line, err := record.Stamp([]byte(strings.Replace(made, tt.from, tt.to, 1)), now, "ann")
		got := string(line)
		if err != nil {
			got = "! " + err.Error()
		}
		if part, fails := strings.CutPrefix(tt.want, "! "); fails && (line != nil || !strings.Contains(got, part)) || !fails && got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.to, got, tt.want)
		}
	}
}
