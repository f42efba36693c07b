package workerlink_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/internal/workerlink"
)

// lines keeps lines, and fails for those that are full.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(line, []byte("full")) {
		return 0, errors.New("no space\nleft")
	}
	return l.all.Write(line)
}

// TestLog appends lines by several writers. A line that cannot be written is reported, and the next ones are
// written. What is no line ends the connection, with an error for each writer.
func TestLog(t *testing.T) {
	ours, theirs := net.Pipe()
	var kept lines
	served := make(chan error, 1)
	stamp := func(line []byte) ([]byte, error) {
		if bytes.Equal(line, []byte("nonsense")) {
			return nil, errors.New("not a line")
		}
		return append([]byte("ann "), line...), nil
	}
	go func() { served <- workerlink.ServeLog(ours, stamp, &kept) }()
	log := workerlink.NewLog(theirs)
	var writing sync.WaitGroup
	for range 8 {
		writing.Go(func() {
			for range 20 {
				if n, err := log.Write([]byte("line\n")); n != 5 || err != nil {
					t.Error(n, err)
				}
			}
		})
	}
	writing.Wait()
	if _, err := log.Write([]byte("full\n")); err == nil || err.Error() != "no space left" {
		t.Error(err)
	}
	for _, wrong := range []string{"", "\n", "no end"} {
		if _, err := log.Write([]byte(wrong)); err == nil {
			t.Errorf("%q was written", wrong)
		}
	}
	if _, err := log.Write([]byte("last\n")); err != nil {
		t.Error(err)
	}
	if _, err := log.Write([]byte("nonsense\n")); err == nil {
		t.Error("nonsense was written")
	}
	if err := <-served; err == nil || !strings.Contains(err.Error(), "not a line") {
		t.Error(err)
	}
	if _, err := log.Write([]byte("line\n")); err == nil || !strings.HasPrefix(err.Error(), "the gateway has ended") {
		t.Error(err)
	}
	if got, want := kept.all.String(), strings.Repeat("ann line\n", 160)+"ann last\n"; got != want {
		t.Errorf("%q", got)
	}
	if err := log.Close(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// TestLongLine announces the longest line, which then does not come, and longer ones.
func TestLongLine(t *testing.T) {
	for size, malformed := range map[uint32]bool{72 << 20: false, 72<<20 + 1: true, 0: true, 1<<32 - 1: true} {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Write(binary.BigEndian.AppendUint32(nil, size))
			theirs.Close()
		}()
		if err := workerlink.ServeLog(ours, nil, io.Discard); (err != nil) != malformed {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
