package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json"
)

// Link is the place of a line in the chain.
type Link struct {
	// N is the number of the line, counted from 1.
	N int64 `json:"n"`
	// Writer is the server that wrote the line.
	Writer string `json:"writer"`
	// Open is how many effects have begun and not ended after this line.
	Open int `json:"open"`
	// Prev is the hash of the line before, "" for the first one.
	Prev string `json:"prev"`
	// Torn is the hash of the part of a line that a killed server left before this one.
	Torn string `json:"torn,omitzero"`
	// Loose is true if the file could not be locked. Then lines of other servers may be between
	// this line and the one before.
	Loose bool `json:"loose,omitzero"`
}

const (
	linkMark = `,"chain":{`
	hashMark = `,"hash":"`
	hashSize = 2 * sha256.Size
	hashEnd  = len(hashMark) + hashSize + len(`"}`)
	// maxTail is more than what a line has after its own members.
	maxTail = 1 << 10
)

var errNoRecord = errors.New("not a line of the record")

// appendLinked appends a line of JSON, without its end, with a link and its hash. It returns the hash.
func appendLinked(to, line []byte, l Link) (all []byte, hash string, err error) {
	if len(line) < len(`{"a":1}`) || line[0] != '{' || line[len(line)-1] != '}' || bytes.IndexByte(line, '\n') >= 0 {
		return to, "", errNoRecord
	}
	link, err := json.Marshal(l)
	if err != nil {
		return to, "", err
	}
	from := len(to)
	to = append(to, line[:len(line)-1]...)
	to = append(to, linkMark...)
	to = append(to, link[1:]...)
	hash = sumOf(to[from:])
	to = append(to, hashMark...)
	to = append(to, hash...)
	return append(to, "\"}\n"...), hash, nil
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// split returns the parts of a linked line, or of its end: what the hash is of, the link, and the hash that it has. It
// does not compute the hash.
func split(line []byte) (body []byte, l Link, hash string, ok bool) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	if len(line) < hashEnd || !bytes.HasSuffix(line, []byte(`"}`)) {
		return nil, l, "", false
	}
	body = line[:len(line)-hashEnd]
	tail := line[len(body):]
	if !bytes.HasPrefix(tail, []byte(hashMark)) {
		return nil, l, "", false
	}
	hash = string(tail[len(hashMark) : len(hashMark)+hashSize])
	at := bytes.LastIndex(body, []byte(linkMark))
	if strings.Trim(hash, "0123456789abcdef") != "" || at < 0 {
		return nil, l, "", false
	}
	err := json.Unmarshal(body[at+len(linkMark)-1:], &l, json.RejectUnknownMembers(true))
	return body, l, hash, err == nil
}

// end is how far the chain is.
type end struct {
	n    int64
	open int
	hash string // "" before the first line
	torn string // the hash of the part of a line after it
	cut  bool   // there is such a part
}

// endOf returns the end of a file of this size. Found is false if it has no line of a chain at its end.
func endOf(f io.ReaderAt, size int64) (e end, found bool, err error) {
	if size == 0 {
		return e, false, nil
	}
	whole, err := wholeLines(f, size)
	if err != nil {
		return e, false, err
	}
	if whole < size {
		part := make([]byte, size-whole)
		if _, err := f.ReadAt(part, whole); err != nil {
			return e, false, fmt.Errorf("the end of the record: %w", err)
		}
		e.cut = true
		if body, l, hash, ok := split(part); ok && sumOf(body) == hash { // only its end is missing
			e.n, e.open, e.hash = l.N, l.Open, hash
			return e, true, nil
		}
		e.torn = sumOf(part)
	}
	tail := make([]byte, min(whole, maxTail))
	if _, err := f.ReadAt(tail, whole-int64(len(tail))); err != nil {
		return e, false, fmt.Errorf("the end of the record: %w", err)
	}
	_, l, hash, ok := split(tail)
	if ok {
		e.n, e.open, e.hash = l.N, l.Open, hash
	}
	return e, ok, nil
}

// wholeLines returns the size of the file without a part of a line at its end.
func wholeLines(f io.ReaderAt, size int64) (int64, error) {
	buffer := make([]byte, min(size, maxTail))
	for at := size; at > 0; buffer = make([]byte, min(at, 64<<10)) {
		from := max(0, at-int64(len(buffer)))
		part := buffer[:at-from]
		if _, err := f.ReadAt(part, from); err != nil {
			return 0, fmt.Errorf("the end of the record: %w", err)
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		at = from
	}
	return 0, nil
}

var (
	beginsMark = []byte(`{"effect":"begins"`)
	endsMark   = []byte(`{"effect":"ends"`)
)

// next returns the link of a line after e.
func (e end) next(line []byte, writer string, loose bool) Link {
	l := Link{N: e.n + 1, Writer: writer, Open: e.open, Prev: e.hash, Torn: e.torn, Loose: loose}
	switch {
	case bytes.HasPrefix(line, beginsMark):
		l.Open++
	case bytes.HasPrefix(line, endsMark):
		l.Open = max(0, l.Open-1)
	}
	return l
}

// chain returns lines, each without its end, linked after e, which becomes their end.
func (e *end) chain(writer string, loose bool, lines ...[]byte) (all []byte, err error) {
	if e.cut {
		all = append(all, '\n')
	}
	for _, line := range lines {
		l := e.next(line, writer, loose)
		var hash string
		if all, hash, err = appendLinked(all, line, l); err != nil {
			return nil, err
		}
		*e = end{n: l.N, open: l.Open, hash: hash}
	}
	return all, nil
}
