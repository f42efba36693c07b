package workers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/internal/board"
	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/internal/workerlink"
	"github.com/go-json-experiment/json/jsontext"
)

// served returns what serves the connections that the worker of a user inherits, in the order of
// [workerlink.Settings]. A worker has no descriptor of a log: it could open the file again by it, and
// read, empty and rewrite what all users have written.
func (p *Pool) served(name string, kept store.Store) (all []func(net.Conn) error) {
	approver := p.http.Load().Principals[name].Approver
	if p.o.Record != nil {
		all = append(all, func(conn net.Conn) error {
			record := audit.On(p.o.Record)
			err := workerlink.ServeLog(conn, func(line []byte) ([]byte, error) { return board.Stamp(line, time.Now(), name, approver) }, &effects{to: record, open: map[string]bool{}})
			return errors.Join(err, record.Close()) // the worker has ended, and with it all that it ran
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

// The bounds of the effects of a worker, which the gateway ends if the worker does not.
const (
	maxEffects  = 4096 // that have begun and not ended
	maxEffectID = 512  // bytes of the ids of one
)

// effects passes on lines of a worker. It refuses effects that cannot be: such lines would count among
// those of all users, and the record of all would contradict itself.
type effects struct {
	to   io.Writer
	open map[string]bool // by the id of the beginning
}

var effectMark = []byte(`{"effect":`)

// Write implements [io.Writer] for a line that [board.Stamp] has returned. One goroutine at a time may write.
func (e *effects) Write(line []byte) (int, error) {
	if !bytes.HasPrefix(line, effectMark) {
		return e.to.Write(line)
	}
	l, err := audit.Parse(line, true)
	switch {
	case err != nil:
		return 0, err
	case l.Effect == audit.Ends && !e.open[l.Of]:
		return 0, fmt.Errorf("no effect %.100q has begun, or it has ended", l.Of)
	case l.Effect != audit.Begins:
	case e.open[l.ID]:
		return 0, fmt.Errorf("the effect %.100q has begun already", l.ID)
	case len(l.ID)+len(l.Thread) > maxEffectID:
		return 0, fmt.Errorf("the ids of an effect have more than %d bytes", maxEffectID)
	case len(e.open) == maxEffects:
		return 0, fmt.Errorf("%d effects have begun and not ended", maxEffects)
	}
	n, err := e.to.Write(line)
	switch {
	case err != nil:
	case l.Effect == audit.Begins:
		e.open[l.ID] = true
	case l.Effect == audit.Ends:
		delete(e.open, l.Of)
	}
	return n, err
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
