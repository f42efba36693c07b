package show

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestNow shows what a turn does, after what a command has printed.
func TestNow(t *testing.T) {
	for _, tt := range []struct {
		printed string // "-" is no command
		took    time.Duration
		width   int
		want    string
	}{
		{"-", 0, 0, "running go test"},
		{"-", 20 * time.Second, 0, "running go test · 20s"},
		{"", 0, 0, "running go test"},
		{"", 48 * time.Second, 0, "running go test · 48s · no output seen"},
		{"one", 2 * time.Minute, 0, `running go test · 2m · 1 line · "one"`},
		{"one\ntwo\n", 125 * time.Second, 0, `running go test · 2m5s · 2 lines · "two"`},
		{"one\n\n  \n", time.Hour, 0, `running go test · 1h · 3 lines · "one"`},
		{"10%\r50%\r100%", time.Second, 0, `running go test · 1s · 1 line · "100%"`},
		{"10%\r50%\r", time.Second, 0, `running go test · 1s · 1 line · "50%"`},
		{"10%\r\n20%\r\n", time.Second, 0, `running go test · 1s · 2 lines · "20%"`},
		{"\x1b[32mok\x1b[0m\tpkg\n", time.Second, 0, `running go test · 1s · 1 line · "ok pkg"`},
		{"\x1b]0;title\x07x \x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", time.Second, 0, `running go test · 1s · 1 line · "x link"`},
		{`" · waiting for approval of ` + "\u202e\u200b", time.Second, 0, `running go test · 1s · 1 line · "' · waiting for approval of \u{202e}\u{200b}"`},
		{"\xff\xfe", time.Second, 0, "running go test · 1s · 1 line · \"\uFFFD\""},
		{strings.Repeat("x", 5000), time.Second, 50, `running go test · 1s · 1 line · "` + strings.Repeat("x", 15) + `…"`},
		{"one\n", time.Second, 40, `running go test · 1s · 1 line`},
	} {
		begin := time.Now()
		n := Now{Doing: "running go test", Since: begin}
		if tt.printed != "-" {
			n.Output = &Output{}
			n.Output.Write([]byte(tt.printed))
		}
		must.Equal(t, tt.printed, tt.want, n.Line(begin.Add(tt.took), tt.width))
	}
	long := Now{Doing: strings.Repeat("x", 100), Output: &Output{}}
	long.Output.Write([]byte("ok pkg/number139 0.1s"))
	must.Equal(t, "a long command", strings.Repeat("x", 44)+`… · 1 line · "ok pkg/number139 0.1s"`, long.Line(time.Time{}, 80))
}

// FuzzOutput checks that output in two pieces is shown like the whole, on one line that is not too long.
func FuzzOutput(f *testing.F) {
	for _, text := range []string{"one\ntwo", "a\r\nb\rc", "\x1b[1mx\x1b[0m\n \r", "é\r\ré\n"} {
		f.Add(text, 2)
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		var whole, parts Output
		whole.Write([]byte(text))
		at = min(max(at, 0), len(text))
		parts.Write([]byte(text[:at]))
		parts.Write([]byte(text[at:]))
		must.Equal(t, "lines", whole.Lines(), parts.Lines())
		must.Equal(t, "last", whole.Last(), parts.Last())
		line := Now{Doing: text, Output: &whole}.Line(time.Time{}, 80)
		if utf8.RuneCountInString(line) > 80 || strings.ContainsAny(line, "\r\n\x1b") || len(whole.tail) > 2*maxTail {
			t.Errorf("%q", line)
		}
	})
}
