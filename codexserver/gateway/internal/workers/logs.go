package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/internal/workerlink"
	"github.com/go-json-experiment/json/jsontext"
)

// served returns what serves the connections that the worker of a user inherits, in the order of
// [workerlink.Settings]. A worker has no descriptor of a log: it could open the file again by it, and
// read, empty and rewrite what all users have written.
func (p *Pool) served(name string, kept store.Store) (all []func(net.Conn) error) {
	if p.o.Record != nil {
		all = append(all, func(conn net.Conn) error {
			return workerlink.ServeLog(conn, func(line []byte) ([]byte, error) { return record.Stamp(line, time.Now(), name) }, record.On(p.o.Record))
		})
	}
	if p.o.Trace != nil {
		all = append(all, func(conn net.Conn) error {
			return workerlink.ServeLog(conn, func(line []byte) ([]byte, error) { return stampTrace(line, time.Now(), name) }, p.o.Trace)
		})
	}
	if kept != nil {
		all = append(all, func(conn net.Conn) error { return workerlink.ServeStore(context.Background(), conn, kept) })
	}
	return all
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
