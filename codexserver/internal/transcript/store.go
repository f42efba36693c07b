package transcript

import (
	"container/list"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

// How many bytes all logs of one server keep, in a file or in memory.
const (
	MaxInFile   = 256 << 20
	MaxInMemory = 64 << 20
)

const (
	pieceSize = 16 << 10 // largest size of a piece in bytes
	pieceCost = 4 << 10  // overhead of a piece, such as the last block in a file
)

// Store limits the total size of the texts of its logs. It is safe for concurrent use.
type Store struct {
	mu     sync.Mutex // guards the texts of all logs
	max    int
	used   int
	pieces list.List // of *piece, the oldest first
	slots  *slots    // nil keeps the bytes in memory
}

// NewStore returns a store that keeps at most max bytes in memory.
func NewStore(max int) *Store { return &Store{max: max} }

// InFile returns a store that keeps its bytes in a file without a name in a folder, which is
// made if missing. If there can be no such file, it keeps them in memory.
func InFile(folder string) *Store {
	return &Store{max: MaxInFile, slots: &slots{folder: folder}}
}

// shelf limits the total size of texts of one kind of one thread.
type shelf struct {
	store *Store
	max   int
	used  int
	texts []*text // the oldest, which loses its beginning first, comes first
}

// newText adds a text to the shelf.
func (sh *shelf) newText() *text {
	t := &text{shelf: sh}
	sh.texts = append(sh.texts, t)
	return t
}

// drop drops the first piece of the first text that is not empty.
func (sh *shelf) drop() {
	for _, t := range sh.texts {
		if len(t.pieces) > 0 {
			t.pieces[0].drop()
			return
		}
	}
}

// text grows at its end and loses its beginning. The store's mutex guards it.
type text struct {
	shelf    *shelf
	pieces   []*piece // in their order
	from, to int64    // the kept part of all that was written
}

// piece is a part of a text.
type piece struct {
	text    *text
	size    int
	data    []byte // nil in a file
	slot    int64  // in a file
	inStore *list.Element
}

// add appends valid UTF-8.
func (t *text) add(s string) {
	for s != "" {
		p, room := t.last()
		part := utf8text.Head(s, room)
		t.to += int64(len(part))
		s = s[len(part):]
		if err := p.write(part); err != nil {
			t.lose()
			continue
		}
		p.size += len(part)
		t.grow(len(part))
	}
	for sh := t.shelf; sh.used > sh.max; {
		sh.drop()
	}
	for st := t.shelf.store; st.used > st.max; {
		st.pieces.Front().Value.(*piece).drop()
	}
}

// last returns the piece to write to, and how many bytes it has room for.
func (t *text) last() (p *piece, room int) {
	if n := len(t.pieces); n > 0 {
		p = t.pieces[n-1]
		if room = pieceSize - p.size; room >= utf8.UTFMax {
			return p, room
		}
	}
	p = &piece{text: t, slot: -1}
	p.inStore = t.shelf.store.pieces.PushBack(p)
	t.pieces = append(t.pieces, p)
	t.shelf.store.used += pieceCost
	return p, pieceSize
}

func (t *text) grow(n int) {
	t.shelf.used += n
	t.shelf.store.used += n
}

// drop drops the piece, which is the first of its text.
func (p *piece) drop() {
	t := p.text
	t.shelf.store.pieces.Remove(p.inStore)
	t.pieces[0] = nil
	t.pieces = t.pieces[1:]
	t.from += int64(p.size)
	t.grow(-p.size)
	t.shelf.store.used -= pieceCost
	if p.slot >= 0 {
		t.shelf.store.slots.release(p.slot)
	}
}

// lose drops everything. The text continues after the bytes that could not be written.
func (t *text) lose() {
	for len(t.pieces) > 0 {
		t.pieces[0].drop()
	}
	t.from = t.to
}

// write appends bytes to the piece.
func (p *piece) write(part string) (err error) {
	st := p.text.shelf.store
	if p.size == 0 && st.slots != nil {
		if p.slot, err = st.slots.take(); err != nil { // continue in memory
			st.slots, st.max = nil, min(st.max, MaxInMemory)
		}
	}
	if p.slot < 0 {
		p.data = append(p.data, part...)
		return nil
	}
	return st.slots.write(p.slot, p.size, part)
}

// read returns the bytes of the piece.
func (p *piece) read() ([]byte, error) {
	if p.slot < 0 {
		return p.data, nil
	}
	return p.text.shelf.store.slots.read(p.slot, p.size)
}

// clear resets the text to empty.
func (t *text) clear() {
	t.lose()
	t.from, t.to = 0, 0
}

// read returns at most most bytes from an offset on. They begin at the first whole rune
// that is kept, at.
func (t *text) read(offset int64, most int) (s string, at int64, err error) {
	if offset < 0 || offset > t.to {
		return "", 0, &RangeError{"offset", fmt.Sprintf("%d is not in the text, which has %d bytes", offset, t.to)}
	}
	at = max(offset, t.from)
	var b strings.Builder
	begin := t.from
	for _, p := range t.pieces {
		end := begin + int64(p.size)
		if at < end {
			data, err := p.read()
			if err != nil {
				return "", 0, fmt.Errorf("read the kept text: %w", err)
			}
			data = data[max(at-begin, 0):]
			b.Write(data[:min(len(data), most+utf8.UTFMax-b.Len())])
		}
		begin = end
		if b.Len() == most+utf8.UTFMax {
			break
		}
	}
	s = b.String()
	for s != "" && !utf8.RuneStart(s[0]) {
		s, at = s[1:], at+1
	}
	return utf8text.Head(s, most), at, nil
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
