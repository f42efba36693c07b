package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// readFunc is a reader that is a function.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// TestLongLines checks for lines of many lengths that those up to the limit are read, that the others
// are refused with their id, wherever it is, and that of them nothing is held. The line behind is read.
func TestLongLines(t *testing.T) {
	const behind = `{"id":8}`
	for _, limit := range []int{100, slabSize, 100_000} {
		for _, n := range []int{100, 101, limit - 1, limit, limit + 1, limit + 5000, limit + slabSize, 300_000} {
			for name, format := range map[string]string{"first": `{"id":7,"method":"x","p":"%s"}`, "last": `{"method":"x","p":"%s","id":7}`} {
				for _, last := range []int{0, 1, 200, n} { // so many bytes come in a piece of their own
					line := fmt.Sprintf(format, strings.Repeat("x", n-len(format)+2))
					at := max(0, n-last)
					exact := behind + strings.Repeat(" ", limit-len(behind))
					pieces := []string{line[:at], line[at:] + "\n" + exact + "\n", behind + "\n"}
					var l *lines
					r := readFunc(func(b []byte) (int, error) {
						if held := l.long.size + len(l.buf) - l.start; held > limit+slabSize {
							t.Errorf("%d bytes are held with a limit of %d", held, limit)
						}
						for len(pieces) > 0 && pieces[0] == "" {
							pieces = pieces[1:]
						}
						if len(pieces) == 0 {
							return 0, io.EOF
						}
						m := copy(b, pieces[0])
						pieces[0] = pieces[0][m:]
						return m, nil
					})
					l = Lines(r, nil, nil).(*lines)
					l.SetReadLimit(limit)
					got, err := l.Read(context.Background())
					var long *overlong
					switch errors.As(err, &long); {
					case len(line) != n:
						t.Fatalf("a line of %d bytes, want %d", len(line), n)
					case n <= limit && (string(got) != line || err != nil):
						t.Errorf("%d bytes, limit %d, %d last: read %d: %v", n, limit, last, len(got), err)
					case n > limit && (long == nil || long.message.id.String() != "7"):
						t.Errorf("%d bytes, limit %d, %d last, id %s: read %d: %v", n, limit, last, name, len(got), err)
					}
					for range 2 {
						if got, err := l.Read(context.Background()); string(got) != behind || err != nil {
							t.Errorf("behind %d bytes, limit %d: %q, %v", n, limit, got, err)
						}
					}
					if _, err := l.Read(context.Background()); !errors.Is(err, io.EOF) {
						t.Errorf("at the end: %v", err)
					}
				}
			}
		}
	}
}
