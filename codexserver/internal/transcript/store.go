package transcript

import (
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

// section is a part of a text in a ring.
type section struct {
	command  int // whose output it is
	at, size int64
}

// kept returns the part of a section that the ring still has.
func (r *ring) kept(s section) section {
	lost := min(max(0, r.start-s.at), s.size)
	return section{s.command, s.at + lost, s.size - lost}
}

// page returns at most most bytes, from an offset on, of a text that had total bytes and has sections. They begin at
// the first whole rune that is kept.
func (r *ring) page(total int64, sections []section, offset int64, most int) (p Page, err error) {
	if offset < 0 || offset > total {
		return Page{Total: total}, &RangeError{"offset", fmt.Sprintf("%d is not in the text, which has %d bytes", offset, total)}
	}
	from := total
	for _, s := range sections {
		from -= r.kept(s).size
	}
	p = Page{Offset: max(offset, from), Total: total, Cut: from}
	var b []byte
	for _, s := range sections {
		s = r.kept(s)
		skip, room := max(0, p.Offset-from), int64(most+utf8.UTFMax-len(b))
		if n := min(s.size-skip, room); n > 0 {
			b = append(b, make([]byte, n)...)
			if err := r.read(s.at+skip, b[int64(len(b))-n:]); err != nil {
				return p, err
			}
		}
		from += s.size
	}
	for len(b) > 0 && !utf8.RuneStart(b[0]) {
		b, p.Offset = b[1:], p.Offset+1
	}
	p.Text = utf8text.Head(string(b), most)
	return p, nil
}

// all returns a part of the text that is the whole ring.
func (r *ring) all(offset int64, most int) (Page, error) {
	return r.page(r.end, []section{{size: r.end}}, offset, most)
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

// inMemory makes the log one without a file.
func (l *Log) inMemory() {
	l.file, l.folder = nil, ""
	for _, r := range l.rings() {
		r.size /= 4
	}
}

// rest frees the memory of a log with a file, because it does not grow for now.
func (l *Log) rest() {
	if l.file == nil {
		return
	}
	for _, r := range l.rings() {
		r.flush()
	}
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
