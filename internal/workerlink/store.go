package workerlink

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/go-json-experiment/json"
)

// The worker calls the methods of its [store.Store] over a connection to its node. Calls and
// answers are frames: the length of the rest in four bytes, the highest first, and
//
//	a call      the method (1 byte), the length of the name (2), the offset (8), the name, and the
//	            data; of a read, the data is the number of bytes to read (4)
//	an answer   the error (1 byte, see errorCodes), and the data, the list as JSON, or the words
//	            of the error
//
// The worker may send further calls before an answer comes. Answers come in the order of the calls.

const (
	callAppend byte = iota
	callPut
	callDelete
	callRead
	callList
)

const (
	callHead = 1 + 2 + 8
	// maxCall and maxAnswer are the sizes of the largest frames, in bytes. A longer one ends
	// the connection.
	maxCall   = callHead + store.MaxName + store.MaxValue
	maxAnswer = 1 + store.MaxList*(store.MaxName+64) + store.MaxData
	// maxCalls is how many calls of a worker the node runs at a time.
	maxCalls = 16
)

// errorCodes returns the errors of a store; the code of an answer is the index. Other errors are
// ErrUnavailable.
func errorCodes() []error {
	return []error{nil, store.ErrUnavailable, store.ErrFull, store.ErrFenced, store.ErrNotFound, store.ErrOrder, store.ErrName}
}

// errMalformed is wrapped by the error of what no worker or node sends.
var errMalformed = errors.New("malformed")

func readFrame(r io.Reader, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size == 0 || size > uint32(most) {
		return nil, fmt.Errorf("%w: a message of %d bytes; want 1 to %d", errMalformed, size, most)
	}
	if size <= 64<<10 {
		frame := make([]byte, size)
		_, err := io.ReadFull(r, frame)
		return frame, err
	}
	// What a peer announces takes memory only as it comes.
	frame, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err == nil && len(frame) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	return frame, err
}

func frameOf(parts ...[]byte) []byte {
	frame := slices.Concat(append([][]byte{make([]byte, 4)}, parts...)...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// ServeStore answers the calls of a worker from s until the connection or ctx ends, which closes
// the connection. Then it waits for the calls that are running. What a worker sends is not
// trusted: s gets only valid names and sizes, and a malformed frame ends the connection, which is
// the only error.
func ServeStore(ctx context.Context, conn io.ReadWriteCloser, s store.Store) error {
	ctx, cancel := context.WithCancel(ctx)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-ctx.Done()
		_ = conn.Close()
	}()
	answers := make(chan chan []byte, maxCalls-2) // one more is being written, and one waits for a place
	var written error
	var work sync.WaitGroup
	work.Go(func() {
		for one := range answers {
			answer := <-one
			if written == nil {
				if _, written = conn.Write(frameOf(answer)); written != nil {
					cancel()
				}
			}
		}
	})
	var err error
	for in := bufio.NewReader(conn); ; {
		var frame []byte
		if frame, err = readFrame(in, maxCall); err != nil {
			break
		}
		var f func() ([]byte, error)
		if f, err = parseCall(ctx, frame, s); err != nil {
			break
		}
		one := make(chan []byte, 1)
		answers <- one
		work.Go(func() { one <- answerOf(f) })
	}
	cancel()
	close(answers)
	work.Wait()
	<-closed
	if errors.Is(err, errMalformed) {
		return fmt.Errorf("the store of a worker: %w", err)
	}
	return nil
}

// parseCall returns the function that makes the call of a frame.
func parseCall(ctx context.Context, frame []byte, s store.Store) (func() ([]byte, error), error) {
	if len(frame) < callHead {
		return nil, fmt.Errorf("%w: a call is cut off", errMalformed)
	}
	method, size, at := frame[0], int(binary.BigEndian.Uint16(frame[1:])), int64(binary.BigEndian.Uint64(frame[3:]))
	if size > len(frame)-callHead || size > store.MaxName || at < 0 {
		return nil, fmt.Errorf("%w: a call has a wrong length or offset", errMalformed)
	}
	name, data := string(frame[callHead:callHead+size]), frame[callHead+size:]
	if err := store.CheckName(name); err != nil && !(method == callList && name == "") {
		return func() ([]byte, error) { return nil, err }, nil
	}
	switch {
	case method == callAppend && len(data) <= store.MaxData:
		return func() ([]byte, error) { return nil, s.Append(ctx, name, at, data) }, nil
	case method == callPut && len(data) <= store.MaxValue:
		return func() ([]byte, error) { return nil, s.Put(ctx, name, data) }, nil
	case method == callDelete && len(data) == 0:
		return func() ([]byte, error) { return nil, s.Delete(ctx, name) }, nil
	case method == callRead && len(data) == 4:
		most := min(binary.BigEndian.Uint32(data), store.MaxData)
		return func() ([]byte, error) { return s.Read(ctx, name, at, int(most)) }, nil
	case method == callList && len(data) == 0:
		return func() ([]byte, error) {
			list, err := s.List(ctx, name)
			if err != nil {
				return nil, err
			}
			return json.Marshal(list)
		}, nil
	}
	return nil, fmt.Errorf("%w: a call of the unknown method %d, or with wrong data", errMalformed, method)
}

func answerOf(f func() ([]byte, error)) []byte {
	data, err := f()
	if err == nil && len(data) < maxAnswer {
		return append([]byte{0}, data...)
	}
	for code, known := range errorCodes() {
		if known != nil && errors.Is(err, known) {
			return append([]byte{byte(code)}, oneLine(err.Error(), maxError)...)
		}
	}
	return append([]byte{1}, oneLine(fmt.Sprint(err), maxError)...)
}

// Remote is the store of a node, as its worker calls it. It is safe for concurrent use.
type Remote struct {
	conn io.ReadWriteCloser
	work sync.WaitGroup // read and write
	over chan struct{}  // closed when no answer comes any more

	// life ends with the first failure, which is its cause, before a call returns it.
	life context.Context
	end  context.CancelCauseFunc

	calls   chan storeCall
	waiting chan chan answer
}

// storeCall is a call that is sent, and where its answer goes.
type storeCall struct {
	frame []byte
	to    chan answer
}

type answer struct {
	data []byte
	err  error
}

var _ store.Store = (*Remote)(nil)

// NewRemote returns the store behind a connection whose other end is that of [ServeStore].
func NewRemote(conn io.ReadWriteCloser) *Remote {
	r := &Remote{conn: conn, over: make(chan struct{}), calls: make(chan storeCall), waiting: make(chan chan answer, maxCalls)}
	r.life, r.end = context.WithCancelCause(context.Background())
	r.work.Go(r.read)
	r.work.Go(r.write)
	return r
}

// Close closes the connection. Running calls fail.
func (r *Remote) Close() error {
	err := r.conn.Close()
	r.work.Wait()
	return err
}

// Ended returns a channel that is closed when the connection has ended, as with the node.
func (r *Remote) Ended() <-chan struct{} { return r.life.Done() }

// Probe asks the node for something, so that Ended is closed afterwards if the node is dead. It
// takes at most a second. For a nil Remote it does nothing.
func (r *Remote) Probe(ctx context.Context) {
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	_, _ = r.List(ctx, probeName) // the answer does not matter
}

const (
	probeTimeout = time.Second
	probeName    = "~" // not a name: the node answers without its store
)

// read reads the answers. Whoever waits for one that does not come learns of it by over.
func (r *Remote) read() {
	defer close(r.over)
	in := bufio.NewReader(r.conn)
	for {
		frame, err := readFrame(in, maxAnswer)
		if err != nil {
			r.fail(err)
			return
		}
		select {
		case one := <-r.waiting:
			one <- parseAnswer(frame)
		default:
			r.fail(errors.New("an answer without a call"))
			return
		}
	}
}

// write writes the calls. It writes each whole, also when its caller has given up: a part would
// make the next ones unreadable.
func (r *Remote) write() {
	for {
		select {
		case c := <-r.calls:
			select {
			case r.waiting <- c.to:
			case <-r.life.Done():
				return
			}
			if _, err := r.conn.Write(c.frame); err != nil {
				r.fail(err)
				return
			}
		case <-r.life.Done():
			return
		}
	}
}

func (r *Remote) fail(err error) {
	r.end(err)
	_ = r.conn.Close()
}

func parseAnswer(frame []byte) answer {
	code, data := int(frame[0]), frame[1:]
	switch {
	case code == 0:
		return answer{data: data}
	case code < len(errorCodes()):
		return answer{err: fmt.Errorf("%w: the node says: %s", errorCodes()[code], oneLine(string(data), maxError))}
	}
	return answer{err: fmt.Errorf("%w: the answer %d is unknown", store.ErrUnavailable, code)}
}

// lost returns why there is no answer.
func (r *Remote) lost() error {
	return fmt.Errorf("%w: the connection to the node has ended: %w", store.ErrUnavailable, context.Cause(r.life))
}

func (r *Remote) call(ctx context.Context, method byte, name string, at int64, data []byte) ([]byte, error) {
	if len(name) > store.MaxName {
		return nil, store.CheckName(name)
	}
	gaveUp := func() error { return fmt.Errorf("%w: %w", store.ErrUnavailable, context.Cause(ctx)) }
	if ctx.Err() != nil {
		return nil, gaveUp()
	}
	head := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint16([]byte{method}, uint16(len(name))), uint64(at))
	c := storeCall{frame: frameOf(head, []byte(name), data), to: make(chan answer, 1)}
	select {
	case r.calls <- c:
	case <-ctx.Done():
		return nil, gaveUp()
	case <-r.life.Done():
		return nil, r.lost()
	}
	select {
	case a := <-c.to:
		return a.data, a.err
	case <-ctx.Done(): // its answer is read nevertheless
		return nil, gaveUp()
	case <-r.over:
		select {
		case a := <-c.to:
			return a.data, a.err
		default:
			return nil, r.lost()
		}
	}
}

// Append implements [store.Store].
func (r *Remote) Append(ctx context.Context, name string, at int64, data []byte) error {
	if len(data) > store.MaxData {
		return fmt.Errorf("%w: %d bytes are too many for an append", store.ErrFull, len(data))
	}
	_, err := r.call(ctx, callAppend, name, at, data)
	return err
}

// Put implements [store.Store].
func (r *Remote) Put(ctx context.Context, name string, data []byte) error {
	if len(data) > store.MaxValue {
		return fmt.Errorf("%w: %s has %d bytes, and %d are allowed", store.ErrFull, name, len(data), store.MaxValue)
	}
	_, err := r.call(ctx, callPut, name, 0, data)
	return err
}

// Delete implements [store.Store].
func (r *Remote) Delete(ctx context.Context, name string) error {
	_, err := r.call(ctx, callDelete, name, 0, nil)
	return err
}

// Read implements [store.Store].
func (r *Remote) Read(ctx context.Context, name string, at int64, most int) ([]byte, error) {
	return r.call(ctx, callRead, name, max(at, 0), binary.BigEndian.AppendUint32(nil, uint32(max(0, min(most, store.MaxData)))))
}

// List implements [store.Store].
func (r *Remote) List(ctx context.Context, after string) ([]store.Info, error) {
	data, err := r.call(ctx, callList, after, 0, nil)
	if err != nil {
		return nil, err
	}
	var list []store.Info
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%w: the list: %w", store.ErrUnavailable, err)
	}
	for _, i := range list {
		if err := store.CheckName(i.Name); err != nil || i.Size < 0 {
			return nil, fmt.Errorf("%w: the list has %.100q", store.ErrUnavailable, i.Name)
		}
	}
	return list, nil
}
