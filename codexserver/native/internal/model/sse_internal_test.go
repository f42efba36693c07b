package model

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readAll returns the events of a stream and how it ended.
func readAll(r io.Reader, maxBytes int64) (events []string, err error) {
	s := newSSE(r, maxBytes)
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
				if d := cmp.Diff(tt.want, got); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
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
