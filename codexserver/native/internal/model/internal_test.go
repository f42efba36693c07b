package model

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

func readAll(r io.Reader, maxBytes int64) (events []string, err error) {
	s := newSSE(r, maxBytes, func(int) error { return nil })
	for {
		e, err := s.next()
		if err != nil {
			return events, err
		}
		said := string(e.data)
		if e.open {
			said += " (open)"
		}
		events = append(events, said)
	}
}

func TestSSE(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"lines", "data: a\n\ndata: b\n\n", []string{"a", "b"}},
		{"carriage returns", "data: a\r\n\r\ndata: b\r\rdata: c\n\r\n", []string{"a", "b", "c"}},
		{"no blank", "data:a\n\n", []string{"a"}},
		{"blanks", "data:  a \n\n", []string{"a"}},
		{"lines of one event", "data: a\ndata: b\n\n", []string{"a\nb"}},
		{"other fields", "event: x\nid: 1\nretry: 5\ndata: a\n\n", []string{"a"}},
		{"comments", ": keep\n\n: alive\n\ndata: a\n\n", []string{"a"}},
		{"event without data", "event: ping\n\ndata: a\n\n", []string{"a"}},
		{"empty data", "data\n\ndata:\n\ndata: \n\n", nil},
		{"byte order mark", "\ufeffdata: a\n\n", []string{"a"}},
		{"no empty line at the end", "data: a\n\ndata: b\n", []string{"a", "b (open)"}},
		{"no end of the line", "data: a\n\ndata: b", []string{"a", "b (open)"}},
		{"nothing", "", nil},
		{"other text", "<html>\n<body>\n\n", []string{"<html>\n<body> (open)"}},
		{"other text behind events", "data: a\n\nread error", []string{"a", "read error (open)"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				got, err := readAll(r, 1<<20)
				if !errors.Is(err, io.EOF) {
					t.Errorf("ended with %v", err)
				}
				must.Equal(t, "result", tt.want, got)
			}
		})
	}
}

func TestSSELimits(t *testing.T) {
	endless := io.LimitReader(zeros{}, 1<<40)
	for _, limit := range []int64{1, 100, 1 << 20, 64 << 20} {
		_, err := readAll(endless, limit)
		var over *LimitError
		if !errors.As(err, &over) {
			t.Errorf("limit %d: ended with %v", limit, err)
		}
	}
}

// TestSSEEvent has the longest event, and one that is a byte longer.
func TestSSEEvent(t *testing.T) {
	lines := strings.Repeat("data:"+strings.Repeat("x", 1<<20-1)+"\n", 16)
	if got, err := readAll(strings.NewReader(lines+"\n"), 64<<20); !errors.Is(err, io.EOF) || len(got) != 1 || len(got[0]) != 16<<20-1 {
		t.Errorf("%d events, %v", len(got), err)
	}
	var over *LimitError
	if _, err := readAll(strings.NewReader(lines+"data:x\n\n"), 64<<20); !errors.As(err, &over) {
		t.Errorf("a longer one: %v", err)
	}
}

// zeros is an endless line.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// TestManyParts checks that a content of many parts takes memory in proportion to them: a provider may send any number.
func TestManyParts(t *testing.T) {
	const n = 1 << 14
	part := `{"text":"` + strings.Repeat("x", 32) + `"},{"type":"thinking","thinking":"y"}`
	v := parse([]byte("[" + strings.Repeat(part+",", n-1) + part + "]"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text, thinking := v.content()
	runtime.ReadMemStats(&after)
	if len(text) != n*32 || len(thinking) != n {
		t.Errorf("%d and %d bytes", len(text), len(thinking))
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d bytes of memory for %d of text", used, len(text))
	}
}

func TestRateLimits(t *testing.T) {
	for percent, want := range map[string]*protocol.RateLimitWindow{
		"12.5": {UsedPercent: 12.5, WindowMinutes: new(int64(300))}, "": nil, "most": nil, "NaN": nil, "+Inf": nil,
	} {
		h := http.Header{"X-Codex-Primary-Used-Percent": {percent}, "X-Codex-Primary-Window-Minutes": {"300"}}
		must.Equal(t, fmt.Sprintf("%q", percent), &protocol.RateLimits{Primary: want}, rateLimits(h))
	}
}

// TestPlainSchema has schemas of MCP servers that some provider refuses, and what each takes.
func TestPlainSchema(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"l":{"type":"array"}}}`:                             `{"properties":{"l":{"items":{"type":"string"},"type":"array"}},"type":"object"}`,
		`{"type":"object","properties":{"l":{"type":"array","items":{"type":"array"}}}}`:    `{"properties":{"l":{"items":{"items":{"type":"string"},"type":"array"},"type":"array"}},"type":"object"}`,
		`{"type":"object","properties":{"l":{"type":"array","items":[{"type":"number"}]}}}`: `{"properties":{"l":{"items":{"type":"string"},"type":"array"}},"type":"object"}`,
		`{"type":"string"}`: `{"properties":{},"type":"object"}`,
		`{"type":"object"}`: `{"properties":{},"type":"object"}`,
		`true`:              `{"properties":{},"type":"object"}`,
		``:                  `{"properties":{},"type":"object"}`,
		`{"type":"object","anyOf":[{"required":["a"]}],"properties":{"a":{"type":"integer","minimum":1,"description":"d"}},"$schema":"x","additionalProperties":false,"required":["a","b"]}`:                      `{"properties":{"a":{"description":"d","type":"integer"}},"required":["a"],"type":"object"}`,
		`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"null"},{"type":"boolean"}]},"c":{},"d":true,"e":{"enum":["x","y"]},"f":{"enum":[1,"y"]},"g":{"$ref":"#/$defs/g"}}}`: `{"properties":{"a":{"type":"string"},"b":{"type":"boolean"},"c":{"type":"string"},"d":{"type":"string"},"e":{"enum":["x","y"],"type":"string"},"f":{"type":"string"},"g":{"type":"string"}},"type":"object"}`,
		`{"type":"object","properties":{"o":{"properties":{"x":{"type":"number"}},"required":["x"]}}}`:                                                                                                            `{"properties":{"o":{"properties":{"x":{"type":"number"}},"required":["x"],"type":"object"}},"type":"object"}`,
	} {
		must.Equal(t, schema, want, string(plainSchema([]byte(schema))))
	}
}

// TestBounds has texts that are as long as they may be, and longer ones.
func TestBounds(t *testing.T) {
	const full = "prompt is too long"
	for _, tt := range []struct {
		status, before int
		want           bool
	}{{400, 2000 - len(full), true}, {400, 2001 - len(full), false}, {0, 0, true}, {413, 0, true}, {422, 0, true}, {500, 0, true}, {404, 0, false}, {429, 0, false}, {503, 0, false}} {
		must.Equal(t, fmt.Sprintf("status %d, after %d bytes", tt.status, tt.before), tt.want, isOverflow(tt.status, strings.Repeat("x", tt.before)+full, refusal{}))
	}
	for n, want := range map[int]time.Duration{0: 200 * time.Millisecond, 1: 400 * time.Millisecond, 8: 51200 * time.Millisecond, 9: time.Minute, 100: time.Minute} {
		if got := backoff(200*time.Millisecond, n); got < want*9/10 || got > want*11/10 {
			t.Errorf("after %d attempts: %v, want %v", n, got, want)
		}
	}
}
