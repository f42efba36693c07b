package rollout

import (
	"bytes"
	"io"
	"slices"
	"strconv"
)

// The lines of newer versions of Codex have a number, and Codex does not read a file whose last line
// has none. Lines that are added to such a file go on counting; those of other files have no number.

// number returns the lines as they are added to a file of that size.
func (w *Writer) number(f io.ReaderAt, size int64) ([]byte, error) {
	if !w.counted || size != w.size {
		line, err := lastLine(f, size)
		if err != nil {
			return nil, err
		}
		w.counted, w.next = true, ordinalOf(line)+1
	}
	var out []byte
	for i, line := range w.lines {
		if w.next > 0 {
			head, rest, _ := bytes.Cut(line, []byte(`","type":"`)) // which follows the timestamp
			out = append(append(out, head...), `","ordinal":`...)
			out = append(strconv.AppendInt(out, w.next+int64(i), 10), `,"type":"`...)
			line = rest
		}
		out = append(out, line...)
	}
	return out, nil
}

// wrote drops the lines of out that the file has, of which n bytes were written.
func (w *Writer) wrote(out []byte, n int) {
	whole := bytes.Count(out[:n], []byte("\n"))
	if w.next > 0 {
		w.next += int64(whole)
	}
	w.lines = slices.Concat(w.lines[whole:]) // an idle conversation keeps no memory for lines
}

// ordinalOf returns the number of a line, -1 without one.
func ordinalOf(line []byte) int64 {
	_, rest, ok := bytes.Cut(line[:min(len(line), 100)], []byte(`","ordinal":`))
	digits, _, end := bytes.Cut(rest, []byte(`,"type":"`))
	n, err := strconv.ParseInt(string(digits), 10, 62)
	if !ok || !end || err != nil || n < 0 {
		return -1
	}
	return n
}

// lastLine returns the beginning of the last line of a file of that size, which ends with a line break.
func lastLine(f io.ReaderAt, size int64) ([]byte, error) {
	from, err := lineBefore(f, size-1)
	if err != nil {
		return nil, err
	}
	line := make([]byte, 100)
	n, err := f.ReadAt(line, from)
	if err == io.EOF {
		err = nil
	}
	return line[:n], err
}
