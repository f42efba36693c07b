package transcript

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

// How many bytes all logs of one server keep, in files or in memory.
const (
	MaxInFile   = 256 << 20
	MaxInMemory = 64 << 20
)

// pieceSize is how many bytes of a text are kept in memory before they are written to its ring.
const pieceSize = 4 << 10

// Store limits the total size of the texts of its logs. It is safe for concurrent use.
type Store struct {
	mu     sync.Mutex // guards the texts of all logs
	max    int
	used   int
	folder string // of the files; "" keeps the bytes in memory
	files  []*file
	writes int // so far
}

// NewStore returns a store that keeps at most max bytes in memory.
func NewStore(max int) *Store { return &Store{max: max} }

// InFile returns a store that keeps the bytes of each log in a file without a name in a folder, which is
// made if missing. If there can be no such file, it keeps them in memory.
func InFile(folder string) *Store { return &Store{max: MaxInFile, folder: folder} }

// file has the texts of one log: a ring for each kind of text. The store's mutex guards it.
type file struct {
	store                      *Store
	last                       int      // the number of the last write
	file                       *os.File // nil before the first write, and in memory
	transcript, diffs, outputs ring
}

// ring keeps the last bytes that were written to it.
type ring struct {
	file       *file
	base, size int64 // the region of the file
	start      int64 // of what is in the region: its bytes before are lost
	end        int64 // of all that was written
	room       int64 // how much of the region was written to since start
	data       []byte
	texts      []*text
}

func (s *Store) newFile() *file {
	f := &file{store: s}
	region := func(base, most int64) ring {
		return ring{file: f, base: base, size: most - most/16} // the rest is for what is in memory
	}
	f.transcript = region(0, MaxTranscript)
	f.diffs = region(MaxTranscript, MaxDiffs)
	f.outputs = region(MaxTranscript+MaxDiffs, MaxOutputs)
	s.files = append(s.files, f)
	return f
}

// close removes everything.
func (f *file) close() {
	f.lose()
	s := f.store
	if i := slices.Index(s.files, f); i >= 0 {
		s.files = slices.Delete(s.files, i, i+1)
	}
}

// lose drops everything that is kept. Texts that grow continue after it.
func (f *file) lose() {
	for _, r := range []*ring{&f.transcript, &f.diffs, &f.outputs} {
		f.store.used -= int(r.room)
		r.start, r.room, r.data = r.end, 0, nil
		for _, t := range r.texts {
			f.store.used -= len(t.tail)
			t.parts, t.tail = nil, nil
		}
	}
	if f.file != nil {
		f.file.Close() // it has no name, so that its bytes go
		f.file = nil
	}
}

// wrote records a write. If there are too many bytes, it drops those of the logs that were not written to for the
// longest time.
func (f *file) wrote() {
	s := f.store
	s.writes++
	f.last = s.writes
	if s.used <= s.max {
		return
	}
	oldest := slices.SortedFunc(slices.Values(s.files), func(a, b *file) int { return a.last - b.last })
	for i := 0; s.used > s.max && i < len(oldest); i++ {
		oldest[i].lose()
	}
}

// from returns where what is kept begins.
func (r *ring) from() int64 { return max(r.start, r.end-r.size) }

// write appends bytes, and returns where they begin.
func (r *ring) write(part []byte) (at int64) {
	at = r.end
	for len(part) > 0 {
		in := (r.end - r.start) % r.size
		n := min(int64(len(part)), r.size-in)
		err := r.put(in, part[:n])
		r.end, part = r.end+n, part[n:]
		if err != nil {
			r.start = r.end
		}
	}
	more := max(0, min(r.end-r.start, r.size)-r.room)
	r.room += more
	r.file.store.used += int(more)
	return at
}

// put writes bytes into the region.
func (r *ring) put(in int64, part []byte) error {
	f := r.file
	if f.file == nil && f.store.folder != "" {
		var err error
		if f.file, err = nameless(f.store.folder); err != nil { // continue in memory
			f.file, f.store.folder, f.store.max = nil, "", min(f.store.max, MaxInMemory)
		}
	}
	if f.file != nil {
		_, err := f.file.WriteAt(part, r.base+in)
		return err
	}
	n := copy(r.data[in:], part)
	r.data = append(r.data, part[n:]...)
	return nil
}

// read returns bytes that are kept.
func (r *ring) read(at, size int64) ([]byte, error) {
	b := make([]byte, size)
	for n := int64(0); n < size; {
		in := (at + n - r.start) % r.size
		next := min(size-n, r.size-in)
		if r.file.file == nil {
			copy(b[n:n+next], r.data[in:])
		} else if _, err := r.file.file.ReadAt(b[n:n+next], r.base+in); err != nil {
			return nil, err
		}
		n += next
	}
	return b, nil
}

// text grows at its end and loses its beginning.
type text struct {
	ring  *ring
	parts []part // in the ring, in their order
	tail  []byte // what follows them
	to    int64  // the size of all that was written
}

// part is a part of a text in its ring.
type part struct{ at, size int64 }

// newText adds a text.
func (r *ring) newText() *text {
	t := &text{ring: r}
	r.texts = append(r.texts, t)
	return t
}

// add appends valid UTF-8.
func (t *text) add(s string) {
	t.to += int64(len(s))
	for s != "" {
		n := min(len(s), pieceSize-len(t.tail))
		t.tail = append(t.tail, s[:n]...)
		t.ring.file.store.used += n
		if s = s[n:]; len(t.tail) == pieceSize {
			t.flush()
		}
	}
	t.ring.file.wrote()
}

// flush writes the tail to the ring.
func (t *text) flush() {
	if len(t.tail) == 0 {
		return
	}
	t.ring.file.store.used -= len(t.tail)
	one := part{t.ring.write(t.tail), int64(len(t.tail))}
	if n := len(t.parts); n > 0 && t.parts[n-1].at+t.parts[n-1].size == one.at {
		t.parts[n-1].size += one.size
	} else {
		t.parts = append(t.parts, one)
	}
	t.tail = t.tail[:0]
}

// rest frees the memory of a text that has a ring, because it does not grow for now.
func (t *text) rest() {
	if len(t.parts) > 0 {
		t.flush()
		t.tail = nil
	}
}

// kept returns the parts that the ring still has, and how many bytes of the text are not kept.
func (t *text) kept() (parts []part, from int64) {
	from = t.to - int64(len(t.tail))
	for _, p := range t.parts {
		if lost := max(0, t.ring.from()-p.at); lost < p.size {
			p = part{p.at + lost, p.size - lost}
			parts = append(parts, p)
			from -= p.size
		}
	}
	t.parts = t.parts[len(t.parts)-len(parts):]
	return parts, from
}

// clear resets the text to empty.
func (t *text) clear() {
	r := t.ring
	r.file.store.used -= len(t.tail)
	if n := len(t.parts); n == 1 && t.parts[0].at+t.parts[0].size == r.end && r.end-r.start <= r.size {
		r.end = t.parts[0].at // nothing follows it, and nothing was overwritten: its room is free for the next
	}
	t.parts, t.tail, t.to = nil, nil, 0
}

// read returns at most most bytes from an offset on. They begin at the first whole rune that is kept. Nil is an
// empty text.
func (t *text) read(offset int64, most int) (p Page, err error) {
	if t == nil {
		t = &text{ring: &ring{}}
	}
	if offset < 0 || offset > t.to {
		return Page{Total: t.to}, &RangeError{"offset", fmt.Sprintf("%d is not in the text, which has %d bytes", offset, t.to)}
	}
	parts, from := t.kept()
	p = Page{Offset: max(offset, from), Total: t.to, Cut: from}
	var b strings.Builder
	room := func() int64 { return int64(most + utf8.UTFMax - b.Len()) }
	begin := from
	for _, one := range parts {
		if skip := max(0, p.Offset-begin); skip < one.size && room() > 0 {
			data, err := t.ring.read(one.at+skip, min(one.size-skip, room()))
			if err != nil {
				return p, fmt.Errorf("read the kept text: %w", err)
			}
			b.Write(data)
		}
		begin += one.size
	}
	if skip := max(0, p.Offset-begin); skip < int64(len(t.tail)) && room() > 0 {
		b.Write(t.tail[skip:min(int64(len(t.tail)), skip+room())])
	}
	s := b.String()
	for s != "" && !utf8.RuneStart(s[0]) {
		s, p.Offset = s[1:], p.Offset+1
	}
	p.Text = utf8text.Head(s, most)
	return p, nil
}

// RangeError reports an argument that names a missing part.
type RangeError struct {
	// Argument is "offset" or "command".
	Argument string
	// Reason is what is wrong with it.
	Reason string
}

// Error implements error.
func (e *RangeError) Error() string { return e.Argument + ": " + e.Reason }
