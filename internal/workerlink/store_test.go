package workerlink_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/codexmcp/codexmcp/codexserver/store/storetest"
	"github.com/codexmcp/codexmcp/internal/workerlink"
	"github.com/google/go-cmp/cmp"
)

// serve serves a store on a connection, and returns the other end.
func serve(t *testing.T, s store.Store) *workerlink.Remote {
	node, worker := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- workerlink.ServeStore(t.Context(), node, s) }()
	r := workerlink.NewRemote(worker)
	t.Cleanup(func() {
		_ = r.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Open {
		dir := t.TempDir()
		return func(epoch uint64) (store.Store, error) {
			d, err := store.OpenDir(dir, epoch)
			if err != nil {
				return nil, err
			}
			t.Cleanup(func() { _ = d.Close() })
			return serve(t, d), nil
		}
	})
}

// nodeStore is a store whose calls wait.
type nodeStore struct {
	store.Store
	entered chan string
	release chan error
}

func (s nodeStore) Put(ctx context.Context, name string, _ []byte) error {
	s.entered <- name
	select {
	case err := <-s.release:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	}
}

func newNodeStore() nodeStore {
	return nodeStore{entered: make(chan string, 100), release: make(chan error)}
}

// Calls run at the same time, and a worker gets their errors, also those that are none of a store.
func TestStoreErrors(t *testing.T) {
	s := newNodeStore()
	r := serve(t, s)
	ends := make(chan error, 3)
	for range 3 {
		go func() { ends <- r.Put(t.Context(), "a", nil) }()
	}
	for range 3 {
		<-s.entered
	}
	s.release <- fmt.Errorf("a: %w:\n2 bytes\x00", store.ErrFull)
	s.release <- errors.New("odd")
	s.release <- nil
	var words []string
	for range 3 {
		switch err := <-ends; {
		case err == nil:
			words = append(words, "")
		case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrUnavailable):
			words = append(words, err.Error())
		default:
			t.Error(err)
		}
	}
	slices.Sort(words)
	if diff := cmp.Diff([]string{"", "the store cannot be reached: the node says: odd", "the store is full: the node says: a: the store is full: 2 bytes\x00"}, words); diff != "" {
		t.Error(diff)
	}
}

// A call ends with its context, with the connection and with the node; a later call gets its own
// answer.
func TestStoreEnds(t *testing.T) {
	s := newNodeStore()
	r := serve(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan error, 1)
	go func() { ends <- r.Put(ctx, "first", nil) }()
	<-s.entered
	cancel()
	for _, err := range []error{<-ends, r.Put(ctx, "late", nil), r.Put(ctx, "later", nil), r.Put(ctx, "last", nil)} {
		if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	go func() { ends <- r.Put(t.Context(), "second", nil) }()
	<-s.entered
	s.release <- store.ErrFull // of one of the two
	s.release <- store.ErrFull
	if err := <-ends; !errors.Is(err, store.ErrFull) {
		t.Error(err)
	}
	go func() { ends <- r.Put(t.Context(), "third", nil) }()
	<-s.entered
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, err := range []error{<-ends, r.Put(t.Context(), "fourth", nil)} {
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "the connection to the node has ended") {
			t.Error(err)
		}
	}
}

// A worker that has tried to reach its node knows whether it is dead.
func TestProbe(t *testing.T) {
	node, worker := net.Pipe()
	served := make(chan error, 1)
	ctx, die := context.WithCancel(t.Context())
	go func() { served <- workerlink.ServeStore(ctx, node, newNodeStore()) }()
	r := workerlink.NewRemote(worker)
	r.Probe(t.Context())
	select {
	case <-r.Ended():
		t.Error("the node lives")
	default:
	}
	die()
	if err := <-served; err != nil {
		t.Error(err)
	}
	r.Probe(t.Context())
	select {
	case <-r.Ended():
	default:
		t.Error("the node is dead")
	}
	_ = r.Close() // it is closed
	(*workerlink.Remote)(nil).Probe(t.Context())
}

// A node that does not answer, or does not read, holds up no call beyond its context.
func TestStoreHangs(t *testing.T) {
	for name, read := range map[string]bool{"no answer": true, "not read": false} {
		t.Run(name, func(t *testing.T) {
			node, worker := net.Pipe()
			if read {
				go func() { _, _ = io.Copy(io.Discard, node) }()
			}
			r := workerlink.NewRemote(worker)
			defer r.Close()
			ctx, cancel := context.WithCancel(t.Context())
			ends := make(chan error, 40)
			for range cap(ends) { // more than may wait
				go func() { ends <- r.Put(ctx, "a", make([]byte, 100)) }()
			}
			cancel()
			for range cap(ends) {
				if err := <-ends; !errors.Is(err, store.ErrUnavailable) {
					t.Error(err)
				}
			}
		})
	}
}

// frame returns a frame of the parts.
func frame(parts ...string) string {
	text := strings.Join(parts, "")
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

// head returns the beginning of a call.
func head(method byte, name string, at uint64) string {
	return string(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint16([]byte{method}, uint16(len(name))), at)) + name
}

// memory is a store that records its calls.
type memory struct {
	store.Store
	mu    sync.Mutex
	calls []string
}

func (m *memory) call(name string, size int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, fmt.Sprintf("%s %d", name, size))
	if err := store.CheckName(name); err != nil {
		panic(err)
	}
	return nil
}

func (m *memory) Append(_ context.Context, name string, at int64, data []byte) error {
	if at < 0 || len(data) > store.MaxData {
		panic("an append that no store takes")
	}
	return m.call(name, len(data))
}

func (m *memory) Put(_ context.Context, name string, data []byte) error {
	return m.call(name, len(data))
}

func (m *memory) Delete(_ context.Context, name string) error { return m.call(name, 0) }

func (m *memory) Read(_ context.Context, name string, at int64, most int) ([]byte, error) {
	if at < 0 || most < 0 || most > store.MaxData {
		panic("a read that no store takes")
	}
	return make([]byte, most), m.call(name, most)
}

func (m *memory) List(_ context.Context, after string) ([]store.Info, error) {
	if after == "" {
		return nil, nil
	}
	return nil, m.call(after, 0)
}

// end is a connection that reads a text and keeps what is written.
type end struct {
	io.Reader
	bytes.Buffer
	mu sync.Mutex
}

func (e *end) Read(p []byte) (int, error) { return e.Reader.Read(p) }

func (e *end) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Buffer.Write(p)
}

func (*end) Close() error { return nil }

// A malformed call ends the connection, before the store hears of it.
func TestStoreMalformed(t *testing.T) {
	for name, c := range map[string]struct {
		in    string
		fails bool
		calls []string
	}{
		"a call":         {frame(head(1, "a", 0), "data"), false, []string{"a 4"}},
		"cut off":        {frame(head(1, "a", 0), "data")[:9], false, nil},
		"a wrong name":   {frame(head(1, "../a", 0), "x") + frame(head(2, "b", 0)), false, []string{"b 0"}},
		"no name":        {frame(head(1, "", 0), "x"), false, nil},
		"empty":          {frame(), true, nil},
		"too long":       {"\xff\xff\xff\xff", true, nil},
		"short":          {frame("\x01\x00"), true, nil},
		"a long name":    {frame(head(1, "aaaa", 0)[:12]), true, nil},
		"negative":       {frame(head(0, "a", 1<<63), "x"), true, nil},
		"unknown method": {frame(head(9, "a", 0)), true, nil},
		"too much":       {frame(head(0, "a", 0), strings.Repeat("x", store.MaxData+1)), true, nil},
		"a wrong read":   {frame(head(3, "a", 0), "x"), true, nil},
		"a huge read":    {frame(head(3, "a", 0), "\xff\xff\xff\xff"), false, []string{fmt.Sprint("a ", store.MaxData)}},
		"a wrong delete": {frame(head(2, "a", 0), "x"), true, nil},
		"a wrong list":   {frame(head(4, "a", 0), "x"), true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := &memory{}
			err := workerlink.ServeStore(t.Context(), &end{Reader: strings.NewReader(c.in)}, m)
			if (err != nil) != c.fails {
				t.Error(err)
			}
			if diff := cmp.Diff(c.calls, m.calls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A node is trusted less than the worker's own memory, too.
func TestStoreMalformedAnswers(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"too long":               {"\xff\xff\xff\xff", "a message of 4294967295 bytes"},
		"unknown code":           {frame("\x63x"), "the answer 99 is unknown"},
		"the first unknown code": {frame("\x07x"), "the answer 7 is unknown"},
		"not a list":             {frame("\x00{}"), "the list"},
		"a wrong name":           {frame("\x00", `[{"name":"../a","size":1}]`), `the list has "../a"`},
		"a wrong size":           {frame("\x00", `[{"name":"a","size":-1}]`), `the list has "a"`},
		"none":                   {"", "the connection to the node has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			node, worker := net.Pipe()
			r := workerlink.NewRemote(worker)
			go func() {
				_, _ = node.Read(make([]byte, 100))
				_, _ = io.WriteString(node, c.in)
				_ = node.Close()
			}()
			_, err := r.List(t.Context(), "")
			if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
			if err := r.Put(t.Context(), "a", nil); !errors.Is(err, store.ErrUnavailable) {
				t.Error(err)
			}
			_ = r.Close()
		})
	}
}

// An answer that nobody waits for ends the connection: it is not the answer of the next call.
func TestStoreAnswerWithoutCall(t *testing.T) {
	node, worker := net.Pipe()
	defer node.Close()
	r := workerlink.NewRemote(worker)
	if _, err := io.WriteString(node, frame("\x00")); err != nil {
		t.Fatal(err)
	}
	<-r.Ended()
	if err := r.Put(t.Context(), "a", nil); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "an answer without a call") {
		t.Error(err)
	}
	_ = r.Close()
}

// What a worker sends reaches the store only in the form of its calls.
func FuzzServeStore(f *testing.F) {
	for method := range byte(6) {
		f.Add(frame(head(method, "a/b", 3), "data"))
		f.Add(frame(head(method, "", 0)) + frame(head(0, "..", 0), "x"))
	}
	f.Add("\x00\x00\x00\x00")
	f.Add("\x00\xff\xff\xff\x01")
	f.Fuzz(func(t *testing.T, in string) {
		m, e := &memory{}, &end{Reader: strings.NewReader(in)}
		_ = workerlink.ServeStore(t.Context(), e, m)
		answers := e.Buffer.Bytes()
		for n := 0; len(answers) > 0; n++ {
			if len(answers) < 5 {
				t.Fatalf("an answer is cut off: %q", answers)
			}
			size := int(binary.BigEndian.Uint32(answers))
			if size == 0 || size > len(answers)-4 {
				t.Fatalf("an answer of %d bytes in %d", size, len(answers))
			}
			answers = answers[4+size:]
		}
	})
}

// Whatever a node sends, a worker gets an answer or an error.
func FuzzRemote(f *testing.F) {
	for _, text := range []string{frame("\x00[]"), frame("\x02full"), frame("\x00", `[{"name":"a","size":1}]`), frame("\x00") + frame("\x01"), "\x00\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, in string) {
		node, worker := net.Pipe()
		r := workerlink.NewRemote(worker)
		var writing sync.WaitGroup
		writing.Go(func() {
			_, _ = node.Read(make([]byte, 100))
			_, _ = io.WriteString(node, in)
			_ = node.Close()
		})
		list, err := r.List(t.Context(), "")
		for _, i := range list {
			if err == nil && store.CheckName(i.Name) != nil {
				t.Errorf("%q", i.Name)
			}
		}
		_ = r.Close()
		writing.Wait()
	})
}
