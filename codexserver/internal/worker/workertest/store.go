// Package workertest has a store in a folder, and tests whether a store keeps the promises of package worker:
//
//	func TestStore(t *testing.T) {
//		workertest.Run(t, func(t *testing.T) workertest.Open { … })
//	}
//
// Run calls the function once for each promise, so that each has an empty store. [Open] opens
// that store for a writer, several times with different epochs.
package workertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// Open opens a store for a writer with an epoch. It fails with an error that wraps
// [worker.ErrFenced] if there was one with a higher epoch; or all writes of the returned store do.
type Open func(epoch uint64) (worker.Store, error)

// Run tests a store. The subtests are its promises.
func Run(t *testing.T, newStore func(t *testing.T) Open) {
	for _, promise := range []struct {
		name string
		test func(s *suite)
	}{
		{"an append is read", (*suite).appends},
		{"an append at another size changes nothing", (*suite).order},
		{"a put replaces all", (*suite).puts},
		{"an append continues a put", (*suite).continues},
		{"a delete removes, also nothing", (*suite).deletes},
		{"a read is bounded, and empty at the end", (*suite).reads},
		{"a list is in order and in pages", (*suite).lists},
		{"malformed names and too much data are refused", (*suite).refuses},
		{"what was written outlives its writer", (*suite).outlives},
		{"an older writer is fenced", (*suite).fences},
		{"a call whose context has ended fails", (*suite).ends},
		{"writes to many names at a time", (*suite).many},
	} {
		t.Run(promise.name, func(t *testing.T) {
			s := &suite{T: t, open: newStore(t)}
			s.Store = s.writer(1)
			promise.test(s)
		})
	}
}

// suite is a test of one promise.
type suite struct {
	*testing.T
	worker.Store
	open Open
}

func (s *suite) writer(epoch uint64) worker.Store {
	s.Helper()
	return must.Get(s.open(epoch))(s)
}

// must fails the test unless the error is want; nil is none.
func (s *suite) must(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("got %v, want %v", err, want)
	}
}

// has fails the test unless a store has text under a name.
func (s *suite) has(in worker.Store, name, text string) {
	s.Helper()
	var all []byte
	for {
		data, err := in.Read(s.Context(), name, int64(len(all)), worker.MaxData)
		if s.must(err, nil); len(data) == 0 {
			break
		}
		all = append(all, data...)
	}
	if string(all) != text {
		s.Fatalf("%s has %d bytes %.100q; want %d bytes %.100q", name, len(all), all, len(text), text)
	}
}

func (s *suite) appends() {
	s.must(s.Append(s.Context(), "a/b-1.jsonl", 0, []byte("one\n")), nil)
	s.must(s.Append(s.Context(), "a/b-1.jsonl", 4, []byte("\x00\xff\n")), nil)
	s.must(s.Append(s.Context(), "a/b-2.jsonl", 0, bytes.Repeat([]byte("x"), worker.MaxData)), nil)
	s.has(s, "a/b-1.jsonl", "one\n\x00\xff\n")
	s.has(s, "a/b-2.jsonl", strings.Repeat("x", worker.MaxData))
}

func (s *suite) order() {
	s.must(s.Append(s.Context(), "a", 1, []byte("x")), worker.ErrOrder)
	_, err := s.Read(s.Context(), "a", 0, 1)
	s.must(err, worker.ErrNotFound)
	s.must(s.Append(s.Context(), "a", 0, []byte("one")), nil)
	for _, at := range []int64{0, 2, 4} {
		s.must(s.Append(s.Context(), "a", at, []byte("two")), worker.ErrOrder)
	}
	s.has(s, "a", "one")
}

func (s *suite) puts() {
	for _, text := range []string{"long content", "short", "", strings.Repeat("y", worker.MaxData+1)} {
		s.must(s.Put(s.Context(), "codex-mcp/tasks/t.json", []byte(text)), nil)
		s.has(s, "codex-mcp/tasks/t.json", text)
	}
}

func (s *suite) continues() {
	s.must(s.Append(s.Context(), "a", 0, []byte("first")), nil)
	s.must(s.Put(s.Context(), "a", []byte("new")), nil)
	s.must(s.Append(s.Context(), "a", 5, []byte("x")), worker.ErrOrder)
	s.must(s.Append(s.Context(), "a", 3, []byte("er")), nil)
	s.has(s, "a", "newer")
}

func (s *suite) deletes() {
	s.must(s.Delete(s.Context(), "none/at/all"), nil)
	s.must(s.Append(s.Context(), "a/b", 0, []byte("x")), nil)
	s.must(s.Delete(s.Context(), "a/b"), nil)
	_, err := s.Read(s.Context(), "a/b", 0, 1)
	s.must(err, worker.ErrNotFound)
	s.must(s.Append(s.Context(), "a/b", 0, []byte("again")), nil)
	s.has(s, "a/b", "again")
}

func (s *suite) reads() {
	s.must(s.Put(s.Context(), "a", bytes.Repeat([]byte("0123456789"), worker.MaxData/10+1)), nil)
	for _, c := range []struct {
		at   int64
		most int
		want int
	}{{0, 3, 3}, {3, 4, 4}, {0, 2 * worker.MaxData, worker.MaxData}, {worker.MaxData, 100, 6}, {1 << 40, 100, 0},
		{0, 0, 0}} {
		data, err := s.Read(s.Context(), "a", c.at, c.most)
		if s.must(err, nil); len(data) != c.want || len(data) > 0 && data[0] != byte('0'+c.at%10) {
			s.Errorf("%d bytes at %d: %d bytes %.20q", c.most, c.at, len(data), data)
		}
	}
}

func (s *suite) lists() {
	list, err := s.List(s.Context(), "")
	if s.must(err, nil); len(list) > 0 {
		s.Errorf("an empty store has %v", list)
	}
	var want []worker.Info
	for i := range worker.MaxList + 3 {
		name := fmt.Sprintf("a/%04d", i)
		want = append(want, worker.Info{Name: name, Size: int64(i % 7)})
		s.must(s.Put(s.Context(), name, make([]byte, i%7)), nil)
	}
	for _, name := range []string{"a-b/c", "a.b", "b"} {
		want = append(want, worker.Info{Name: name, Size: 1})
		s.must(s.Put(s.Context(), name, []byte("x")), nil)
	}
	slices.SortFunc(want, func(a, b worker.Info) int { return strings.Compare(a.Name, b.Name) })
	var got []worker.Info
	for after := ""; ; after = got[len(got)-1].Name {
		page, err := s.List(s.Context(), after)
		if s.must(err, nil); len(page) > worker.MaxList {
			s.Fatalf("a page has %d entries", len(page))
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	if !slices.Equal(got, want) {
		s.Errorf("got %d entries, want %d", len(got), len(want))
	}
}

func (s *suite) refuses() {
	for _, name := range []string{"", "a/../b", ".epoch"} { // CheckName refuses more
		s.must(s.Append(s.Context(), name, 0, []byte("x")), worker.ErrName)
		s.must(s.Put(s.Context(), name, []byte("x")), worker.ErrName)
		s.must(s.Delete(s.Context(), name), worker.ErrName)
		_, err := s.Read(s.Context(), name, 0, 1)
		s.must(err, worker.ErrName)
	}
	s.must(s.Append(s.Context(), "a", 0, make([]byte, worker.MaxData+1)), worker.ErrFull)
	s.must(s.Put(s.Context(), "a", make([]byte, worker.MaxValue+1)), worker.ErrFull)
	list, err := s.List(s.Context(), "")
	if s.must(err, nil); len(list) > 0 {
		s.Errorf("the store has %v", list)
	}
}

func (s *suite) outlives() {
	s.must(s.Append(s.Context(), "log", 0, []byte("one")), nil)
	s.must(s.Put(s.Context(), "record", []byte("two")), nil)
	next := s.writer(2)
	s.has(next, "log", "one")
	s.has(next, "record", "two")
	s.must(next.Append(s.Context(), "log", 3, []byte("+")), nil)
	s.has(next, "log", "one+")
}

func (s *suite) fences() {
	s.must(s.Append(s.Context(), "log", 0, []byte("one")), nil)
	same := s.writer(1)
	s.must(same.Put(s.Context(), "record", []byte("one")), nil)
	next := s.writer(3)
	for _, old := range []worker.Store{s.Store, same} {
		s.must(old.Append(s.Context(), "log", 3, []byte("x")), worker.ErrFenced)
		s.must(old.Append(s.Context(), "new", 0, []byte("x")), worker.ErrFenced)
		s.must(old.Put(s.Context(), "record", []byte("x")), worker.ErrFenced)
		s.must(old.Delete(s.Context(), "record"), worker.ErrFenced)
	}
	if late, err := s.open(2); err == nil {
		err = late.Put(s.Context(), "record", []byte("x"))
		s.must(err, worker.ErrFenced)
	} else {
		s.must(err, worker.ErrFenced)
	}
	s.has(next, "log", "one")
	s.has(next, "record", "one")
	s.must(next.Append(s.Context(), "log", 3, []byte("+")), nil)
	list, err := next.List(s.Context(), "")
	if s.must(err, nil); len(list) != 2 {
		s.Errorf("the store has %v", list)
	}
}

func (s *suite) ends() {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	s.must(s.Append(ctx, "a", 0, []byte("x")), worker.ErrUnavailable)
	s.must(s.Put(ctx, "a", []byte("x")), worker.ErrUnavailable)
	_, err := s.Read(ctx, "a", 0, 1)
	if !errors.Is(err, worker.ErrUnavailable) && !errors.Is(err, worker.ErrNotFound) {
		s.Error(err)
	}
}

func (s *suite) many() {
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			name := fmt.Sprint("log-", i)
			for n := range 10 {
				must.Check(s, s.Append(s.Context(), name, int64(n), []byte{'0' + byte(n)}))
			}
		})
	}
	group.Wait()
	for i := range 50 {
		s.has(s, fmt.Sprint("log-", i), "0123456789")
	}
}
