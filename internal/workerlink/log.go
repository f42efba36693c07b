package workerlink

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"
)

// A worker appends to the logs of the gateway over a connection for each. A call is a frame with a
// line, without its end. The answer is a frame with a zero, or with a one and the words of an error.

// maxLine is the size of the longest line, in bytes. It is more than a message over HTTP may have.
const maxLine = 72 << 20

// ServeLog appends the lines of a worker to w, as stamp returns them, until the connection ends, which
// it closes at the end. It answers a line after it was written, so that a line that could not be
// written is known. What a worker sends is not trusted: an error of stamp or a malformed frame ends
// the connection, and is returned. Lines of one worker wait for each other, and for no other worker.
func ServeLog(conn io.ReadWriteCloser, stamp func(line []byte) ([]byte, error), w io.Writer) error {
	defer conn.Close()
	for in := bufio.NewReader(conn); ; {
		line, err := readFrame(in, maxLine)
		if errors.Is(err, errMalformed) {
			return fmt.Errorf("a log of a worker: %w", err)
		}
		if err != nil {
			return nil
		}
		if line, err = stamp(line); err != nil {
			return fmt.Errorf("a log of a worker: %w", err)
		}
		answer := []byte{0}
		if _, err := w.Write(append(line, '\n')); err != nil {
			answer = append([]byte{1}, oneLine(err.Error(), maxError)...)
		}
		if _, err := conn.Write(frameOf(answer)); err != nil {
			return nil
		}
	}
}

// Log is a log of the gateway, to which a worker appends. It is safe for concurrent use.
type Log struct {
	conn io.ReadWriteCloser

	mu sync.Mutex
	in *bufio.Reader
}

var _ io.WriteCloser = (*Log)(nil)

// NewLog returns a log that [ServeLog] serves at the other end of the connection.
func NewLog(conn io.ReadWriteCloser) *Log { return &Log{conn: conn, in: bufio.NewReader(conn)} }

// Write implements [io.Writer] for a line with its end. It returns when the gateway has written the
// line.
func (l *Log) Write(line []byte) (int, error) {
	text := line[:max(len(line)-1, 0)]
	if len(text) == 0 || len(text) > maxLine || line[len(text)] != '\n' {
		return 0, fmt.Errorf("a log takes a line of 1 to %d bytes at a time, not of %d", maxLine, len(text))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.conn.Write(frameOf(text))
	var answer []byte
	if err == nil {
		answer, err = readFrame(l.in, 1+maxError)
	}
	if err != nil {
		return 0, fmt.Errorf("the gateway has ended: %w", err)
	}
	if answer[0] != 0 {
		return 0, errors.New(string(answer[1:]))
	}
	return len(line), nil
}

// Close closes the connection.
func (l *Log) Close() error { return l.conn.Close() }
