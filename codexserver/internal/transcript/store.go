package transcript

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"unicode/utf8"

	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

// maxTail is how many of the last bytes of a ring are kept in memory before they are written to the file.
const maxTail = 4 << 10

// ring keeps the last bytes that were written to it, in a region of the log's file, and the newest of them in memory.
// Without a file all are in memory, and they are fewer. The log's mutex guards it.
type ring struct {
	log        *Log
	base, size int64 // the region
	start, end int64 // of what is kept, in all that was written
	tail       []byte
}

// write appends bytes.
func (r *ring) write(s string) {
	r.tail = append(r.tail, s...)
	if r.end += int64(len(s)); len(r.tail) >= maxTail {
		r.flush()
	}
}

// flush writes the tail to the file. What cannot be written is lost, with all before it.
func (r *ring) flush() {
	f := r.log.opened()
	if f == nil {
		if int64(len(r.tail)) > r.size+r.size/4 {
			r.tail = slices.Clone(r.tail[int64(len(r.tail))-r.size:])
			r.start = r.end - r.size
		}
		return
	}
	for part, at := r.tail, r.written(); len(part) > 0; {
		n := min(int64(len(part)), r.size-at%r.size)
		if _, err := f.WriteAt(part[:n], r.base+at%r.size); err != nil {
			r.start = r.end
			break
		}
		part, at = part[n:], at+n
	}
	r.start, r.tail = max(r.start, r.end-r.size), nil
}

// written returns the end of what is in the file.
func (r *ring) written() int64 { return r.end - int64(len(r.tail)) }

// read fills b with bytes that are kept.
func (r *ring) read(at int64, b []byte) error {
	for len(b) > 0 {
		if at >= r.written() {
			copy(b, r.tail[at-r.written():])
			return nil
		}
		n := min(int64(len(b)), r.size-at%r.size, r.written()-at)
		if _, err := r.log.file.ReadAt(b[:n], r.base+at%r.size); err != nil {
			return fmt.Errorf("read the kept text: %w", err)
		}
		at, b = at+n, b[n:]
	}
	return nil
}

// page returns at most most bytes, from an offset on, of a text in the ring. They begin at the first whole rune that
// is kept.
func (r *ring) page(at, size, offset int64, most int) (p Page, err error) {
	if offset < 0 || offset > size {
		return Page{Total: size}, fmt.Errorf("argument /offset: %d is not in the text, which has %d bytes", offset,
			size)
	}
	lost := min(max(0, r.start-at), size)
	p = Page{Offset: max(offset, lost), Total: size, Cut: lost}
	b := make([]byte, min(size-p.Offset, int64(most+utf8.UTFMax)))
	if err := r.read(at+p.Offset, b); err != nil {
		return p, err
	}
	for len(b) > 0 && !utf8.RuneStart(b[0]) {
		b, p.Offset = b[1:], p.Offset+1
	}
	p.Text = utf8text.Head(string(b), most)
	return p, nil
}

// opened returns the log's file, which has no name. Without one the log keeps everything in memory.
func (l *Log) opened() *os.File {
	if l.file == nil && l.folder != "" {
		var err error
		if l.file, err = nameless(l.folder); err != nil {
			l.inMemory()
		}
	}
	return l.file
}

// nameless returns a file without a name. Other processes cannot open it, and it disappears with this process. It
// fails on systems where an open file keeps its name.
func nameless(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(folder, "log-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// inMemory makes the log one without a file.
func (l *Log) inMemory() {
	l.file, l.folder = nil, ""
	for _, r := range l.rings() {
		r.size /= 4
	}
}
