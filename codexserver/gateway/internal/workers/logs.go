package workers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/go-json-experiment/json/jsontext"
)

// served returns what the pool does for the worker of a user. A worker has no descriptor of a log: it could open the
// file again by it, and read, empty and rewrite what all users have written. nonsense learns of what no worker sends.
func (p *Pool) served(name string, kept worker.Store, nonsense func(error)) worker.Served {
	s := worker.Served{Store: kept, Nonsense: nonsense}
	add := func(to io.Writer, stamp func(line []byte, now time.Time, user string) ([]byte, error)) func([]byte) error {
		return func(line []byte) error {
			line, err := stamp(line, time.Now(), name)
			if err != nil {
				nonsense(err)
				return err
			}
			_, err = to.Write(append(line, '\n'))
			return err
		}
	}
	if p.o.Record != nil {
		s.Record = add(record.On(p.o.Record), record.Stamp)
	}
	if p.o.Trace != nil {
		s.Trace = add(p.o.Trace, stampTrace)
	}
	return s
}

// stampTrace returns a line of a worker's trace with the time and the user:
//
//	2026-01-02T15:04:05.000Z ann < {"jsonrpc":"2.0", …}
func stampTrace(line []byte, now time.Time, user string) ([]byte, error) {
	_, rest, _ := bytes.Cut(line, []byte(" "))
	direction, message, _ := bytes.Cut(rest, []byte(" "))
	if d := string(direction); d != "<" && d != ">" {
		return nil, errors.New("not a line of a trace: it has no direction")
	}
	text := jsontext.Value(slices.Clone(message))
	if err := text.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, fmt.Errorf("not a line of a trace: %w", err)
	}
	return fmt.Appendf(nil, "%s %s %s %s", now.UTC().Format("2006-01-02T15:04:05.000Z"), user, direction, text), nil
}
