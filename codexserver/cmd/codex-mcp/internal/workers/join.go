package workers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/streamable"
	"github.com/go-json-experiment/json"
)

// Link is a worker's end of the connection with its pool.
type Link struct {
	Order
	// Listener takes the requests of the user.
	Listener net.Listener
	// RecordFile and TraceFile are nil where there is none.
	RecordFile, TraceFile *os.File
	// Drain is closed when work under way is to end by itself, Ended when the worker
	// is to end. Rest receives when the worker may end if it is idle, which
	// [Link.Rests] answers.
	Drain, Ended, Rest <-chan struct{}

	mu     sync.Mutex
	answer *os.File
}

// Join returns the link of this process, which must be a worker. What it inherits must
// be sealed from commands.
func Join() (*Link, error) {
	order := bufio.NewReader(os.NewFile(orderFD, "order"))
	line, err := order.ReadBytes('\n')
	if err != nil {
		return nil, errors.New("a worker is started by codex-mcp http alone")
	}
	l := &Link{answer: os.NewFile(answerFD, "answer")}
	if err := json.Unmarshal(line, &l.Order); err != nil {
		return nil, fmt.Errorf("the order: %w", err)
	}
	socket := os.NewFile(listenerFD, "listener")
	if l.Listener, err = net.FileListener(socket); err != nil {
		return nil, err
	}
	next := uintptr(firstFileFD)
	for _, file := range []struct {
		have bool
		to   **os.File
	}{{l.Order.Record, &l.RecordFile}, {l.Order.Trace, &l.TraceFile}} {
		if file.have {
			*file.to = os.NewFile(next, "log")
			next++
		}
	}
	drain, ended, rest := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	l.Drain, l.Ended, l.Rest = drain, ended, rest
	go func() { // until the pool's process has ended
		defer close(ended)
		draining := false
		for {
			word, err := order.ReadString('\n')
			switch {
			case err != nil:
				return
			case word == drainWord+"\n" && !draining:
				draining = true
				close(drain)
			case word == restWord+"\n":
				select {
				case rest <- struct{}{}:
				default: // it has not answered the one before
				}
			}
		}
	}()
	return l, socket.Close()
}

// Ready reports to the pool that requests are served.
func (l *Link) Ready() error { return l.say(readyWord) }

// Drained reports to the pool that nothing is under way.
func (l *Link) Drained() error { return l.say(drainedWord) }

// Rests reports to the pool whether the worker is idle. An idle one is then ended, and
// gets no more requests.
func (l *Link) Rests(idle bool) error {
	if idle {
		return l.say(idleWord)
	}
	return l.say(busyWord)
}

// Fail reports to the pool why there is no worker.
func (l *Link) Fail(err error) error {
	return l.say(errorWord + strings.Join(strings.Fields(err.Error()), " "))
}

func (l *Link) say(line string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := io.WriteString(l.answer, line+"\n")
	return err
}

// Authenticate returns whose request it is, as the pool says. It fits
// [streamable.Options].Authenticate.
func (l *Link) Authenticate(r *http.Request) (streamable.Principal, error) {
	names := r.Header.Values(principalHeader)
	if len(names) != 1 || names[0] != l.Principal && (names[0] != l.Approver || l.Approver == "") {
		return streamable.Principal{}, errors.New("the request does not come from the server")
	}
	return streamable.Principal{Name: names[0], Scopes: streamable.ParseScopes(r.Header.Get(scopesHeader))}, nil
}
