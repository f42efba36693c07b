package model

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
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

func FuzzSSE(f *testing.F) {
	for _, s := range []string{"data: a\n\n", "data: a\r\n\r\n", "data\rdata:b\n\r", ": c\n\ndata: x\ndata: y\n\n", "\ufeffdata: a\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		whole, err := readAll(strings.NewReader(in), 1<<20)
		bytewise, err2 := readAll(iotest.OneByteReader(strings.NewReader(in)), 1<<20)
		if d := cmp.Diff(whole, bytewise); d != "" {
			t.Errorf("the result depends on how the bytes arrive (-whole +bytewise):\n%s", d)
		}
		if !errors.Is(err, io.EOF) || !errors.Is(err2, io.EOF) {
			t.Errorf("ended with %v and %v", err, err2)
		}
		for _, e := range whole {
			if strings.Contains(e, "\r") {
				t.Errorf("event %q contains a line break", e)
			}
		}
		short, _ := readAll(strings.NewReader(in), int64(len(in)/2))
		if len(short) > len(whole) {
			t.Errorf("half of the stream has more events")
		}
	})
}

// FuzzStreams checks that reading any response ends, and that its result can be sent
// back.
func FuzzStreams(f *testing.F) {
	f.Add(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"n","arguments":"{}"}}]},"finish_reason":"stop"}]}`)
	f.Add(`{"type":"response.output_item.done","item":{"type":"function_call","name":"n","arguments":"{}","call_id":"c"}}`)
	f.Add(`{"type":"response.failed","response":{"error":{"code":"x","message":"try again in 1.5s"}}}`)
	f.Add(`{"error":{"message":5}}`)
	f.Add("[DONE]")
	f.Fuzz(func(t *testing.T, said string) {
		for _, w := range []wire{chatWire{}, responsesWire{}} {
			c := &Client{Getenv: func(string) string { return "" }}
			events := []string{said, said, `{"type":"response.completed"}`, "[DONE]"}
			s := &attempt{client: c, begun: true, report: func(protocol.EventMsg) {}, next: func() (event, error) {
				if len(events) == 0 {
					return event{}, io.EOF
				}
				e := event{data: []byte(events[0])}
				events = events[1:]
				return e, nil
			}}
			resp, err := w.read(s)
			if err != nil {
				continue
			}
			if _, err := w.body(&Request{Items: resp.Items}); err != nil {
				t.Errorf("the result cannot be sent: %v", err)
			}
		}
	})
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
