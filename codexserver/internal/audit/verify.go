package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Head stands for all lines up to one: its number and its hash.
type Head struct {
	N    int64
	Hash string
}

// String returns the head as a person keeps it: N:HASH.
func (h Head) String() string { return fmt.Sprintf("%d:%s", h.N, h.Hash) }

// ParseHead reads a head.
func ParseHead(text string) (h Head, err error) {
	n, hash, _ := strings.Cut(strings.TrimSpace(text), ":")
	h.Hash = hash
	h.N, err = strconv.ParseInt(n, 10, 64)
	if err != nil || h.N < 1 || len(hash) != hashSize || strings.Trim(hash, "0123456789abcdef") != "" {
		return Head{}, fmt.Errorf("want a head such as 12:%s…, found %.100q", strings.Repeat("0", 8), text)
	}
	return h, nil
}

// Options are options of [Verify].
type Options struct {
	// Head is one that was kept elsewhere. By default there is none.
	Head Head
}

// Report is what a check has found.
type Report struct {
	// Faults are what is wrong, in the order of the files.
	Faults []Fault
	// Lines is how many lines of the chain there are, and Plain how many older ones without a chain.
	Lines, Plain int
	// First is the number of the first line. If it is not 1, older ones are no longer there.
	First int64
	// Head is the head of the chain, zero without a line.
	Head Head
	// Unfinished are the beginnings without an end.
	Unfinished []Line
	// Missed is how many lines could not be written when they should have been.
	Missed int
	// Cut is true if the last line has no end, as a killed server leaves it.
	Cut bool
}

// Fault is something wrong at a place.
type Fault struct {
	File string
	Line int   // counted from 1; 0 is the end of the file
	N    int64 // the number of the record, 0 if it is not known
	Why  string
}

// String returns the fault for a person.
func (f Fault) String() string {
	place := f.File
	if f.Line > 0 {
		place += ":" + strconv.Itoa(f.Line)
	}
	if f.N > 0 {
		return fmt.Sprintf("%s: record %d: %s", place, f.N, f.Why)
	}
	return fmt.Sprintf("%s: %s", place, f.Why)
}

// Paths returns the files of a record: the one that it has replaced, if that is there, and itself.
func Paths(path string) []string {
	old := path + ".1"
	if f, err := safefile.Open(old); err == nil {
		_ = f.Close()
		return []string{old, path}
	}
	return []string{path}
}

// Verify checks the chain in files, which are parts of one record in their order. The error says why a file cannot be read; what is wrong in them is in the
// report.
func Verify(paths []string, o *Options) (*Report, error) {
	if o == nil {
		o = &Options{}
	}
	v := &verifier{options: o, decisions: map[string]bool{}, open: map[string]Line{}, ids: map[string]bool{}}
	err := eachFile(paths, func(path string, f io.Reader) error {
		v.file, v.line = path, 0
		return eachLine(f, v.add)
	})
	if err != nil {
		return nil, err
	}
	return v.end(), nil
}

type verifier struct {
	options *Options
	report  Report
	file    string
	line    int

	unsure bool     // the line before was changed, or put there
	begun  bool     // there was a line of the chain
	next   int64    // the number of the next line
	last   string   // the hash of the line before, "" if it is not known
	recent []string // the hashes of the last lines, for loose ones
	loose  int      // how many of the last lines are loose
	torn   *Fault   // a line that the next one may explain
	part   string   // its hash

	decisions map[string]bool // by id; true while the approval was not used
	open      map[string]Line
	ids       map[string]bool
	matched   bool // the head was found
}

// maxRecent bounds how many lines may be between a loose line and the one before.
const maxRecent = 256

func (v *verifier) fault(n int64, format string, args ...any) {
	v.report.Faults = append(v.report.Faults, Fault{v.file, v.line, n, fmt.Sprintf(format, args...)})
}

// add checks a line.
func (v *verifier) add(text []byte, ended bool) error {
	v.line++
	body, link, hash, ok := split(text)
	v.report.Cut = !ended
	switch {
	case !ended && !ok && followed(text):
		v.unclear(text, "the byte after it was changed")
		v.report.Cut = false
		return nil
	case !ended && !ok:
		v.unclear(text, "the last line has no end")
		return nil
	case !ok && !v.begun && bytes.HasPrefix(text, []byte("{")) && !bytes.Contains(text, []byte(linkMark)) && !bytes.Contains(text, []byte(hashMark)):
		v.report.Plain++
		return nil
	case !ok:
		v.unclear(text, "this is not a line of the chain: it was changed or put here")
		return nil
	}
	v.explain(link.Torn)
	v.report.Lines++
	if sum := sumOf(body); sum != hash || !canonical(text, body, link, hash) {
		n := link.N
		if v.begun {
			n = v.next
		}
		v.fault(n, "it was changed: its hash does not fit")
		v.begun, v.next, v.last = true, n+1, ""
		return nil
	}
	v.place(link, hash)
	v.head(Head{link.N, hash})
	line, err := Parse(text, false)
	if err != nil {
		v.fault(link.N, "it cannot be read: %v", err)
		return nil
	}
	v.meaning(link.N, line)
	return nil
}

// followed reports whether a line is whole but for another byte at its end.
func followed(text []byte) bool {
	body, _, hash, ok := split(text[:max(0, len(text)-1)])
	return ok && sumOf(body) == hash
}

// canonical reports whether a line is exactly what is written for its parts.
func canonical(text, body []byte, l Link, hash string) bool {
	at := bytes.LastIndex(body, []byte(linkMark))
	again, sum, err := appendLinked(nil, append(bytes.Clone(body[:at]), '}'), l)
	return err == nil && sum == hash && bytes.Equal(again, append(bytes.Clone(text), '\n'))
}

// unclear keeps a line that may be what a killed server left.
func (v *verifier) unclear(text []byte, why string) {
	v.explain("")
	n := int64(0)
	if v.begun {
		n = v.next
	}
	v.torn, v.part = &Fault{v.file, v.line, n, why}, sumOf(text)
}

// explain ends the wait for the explanation of a part of a line.
func (v *verifier) explain(sum string) {
	if v.torn != nil && sum != v.part {
		v.report.Faults = append(v.report.Faults, *v.torn)
		v.last, v.unsure = "", true // so that one change is one fault
	} else if v.torn == nil && sum != "" {
		v.fault(0, "the part of a line before it is missing")
	}
	v.torn = nil
}

// place checks the place of a line.
func (v *verifier) place(l Link, hash string) {
	// A server that had the lock has read the end before the loose lines of others, and writes after them.
	late := v.loose > 0 && l.Prev != v.last && slices.Contains(v.recent[max(0, len(v.recent)-v.loose-1):], l.Prev)
	follows := l.Prev == v.last || v.last == "" && v.begun || late || l.Loose && slices.Contains(v.recent, l.Prev)
	switch {
	case !v.begun:
		v.report.First = l.N
		if (l.N == 1) != (l.Prev == "") {
			v.fault(l.N, "it is not the first one, and says so")
		} else if l.N > 1 && v.report.Plain > 0 && !v.unsure {
			v.fault(l.N, "%s before it", missing(1, l.N-1))
		}
	case late, l.Loose && follows, v.unsure && l.N == v.next+1:
	case l.N > v.next:
		v.fault(l.N, "%s before it", missing(v.next, l.N-1))
	case l.N < v.next:
		v.fault(l.N, "it is not in its place: record %d should be here", v.next)
	case !follows:
		v.fault(l.N, "it does not follow the record before it")
	}
	v.begun, v.unsure, v.next, v.last = true, false, l.N+1, hash
	if v.loose++; !l.Loose {
		v.loose = 0
	}
	v.recent = append(v.recent, hash)
	if len(v.recent) > maxRecent {
		v.recent = slices.Delete(v.recent, 0, 1)
	}
}

func missing(from, to int64) string {
	if from == to {
		return fmt.Sprintf("record %d is missing", from)
	}
	return fmt.Sprintf("records %d to %d are missing", from, to)
}

func (v *verifier) head(h Head) {
	v.report.Head = h
	if want := v.options.Head; h.N == want.N {
		v.matched = v.matched || h.Hash == want.Hash
	}
}

// meaning checks what a line says about others.
func (v *verifier) meaning(n int64, l Line) {
	if len(v.report.Faults) > 0 { // they may be why records seem to contradict each other
		return
	}
	whole := v.report.First == 1 // otherwise what a line names may be in a file that is gone
	v.report.Missed += l.Missed
	if l.ID != "" {
		if v.ids[l.ID] {
			v.fault(n, "its id is that of another record")
		}
		v.ids[l.ID] = true
	}
	switch l.Effect {
	case "":
		if l.ID != "" {
			v.decisions[l.ID] = l.Approves()
		}
	case Begins:
		v.open[l.ID] = l
		approves, known := v.decisions[l.DecidedBy]
		switch {
		case l.DecidedBy == "", !known && !whole:
		case !known:
			v.fault(n, "there is no decision %s that allows it", l.DecidedBy)
		case !approves:
			v.fault(n, "the decision %s does not allow it, or has allowed something else", l.DecidedBy)
		}
		if known {
			v.decisions[l.DecidedBy] = false
		}
	case Ends:
		if _, begun := v.open[l.Of]; !begun && (whole || v.ids[l.Of]) {
			v.fault(n, "it ends what has not begun, or has ended")
		}
		delete(v.open, l.Of)
	}
}

// end returns the report after the last line.
func (v *verifier) end() *Report {
	if v.torn != nil && !v.report.Cut {
		v.report.Faults = append(v.report.Faults, *v.torn)
	}
	v.line = 0
	if want := v.options.Head; want.N > 0 && !v.matched {
		switch {
		case want.N > v.report.Head.N:
			v.fault(0, "it is cut: %s, which the kept head has", missing(v.report.Head.N+1, want.N))
		case want.N < v.report.First:
			v.fault(0, "the kept head is of record %d, which is no longer here: the first one is %d", want.N, v.report.First)
		default:
			v.fault(want.N, "it is not the one of the kept head: the chain was made anew")
		}
	}
	v.report.Unfinished = slices.SortedFunc(maps.Values(v.open), func(a, b Line) int { return cmp.Compare(a.Chain.N, b.Chain.N) })
	return &v.report
}

// maxLine bounds a line, in bytes.
const maxLine = 256 << 20

// eachLine calls f with each line without its end, and with whether it has one.
func eachLine(r io.Reader, f func(text []byte, ended bool) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var long []byte
	for {
		part, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if long = append(long, part...); len(long) > maxLine {
				return fmt.Errorf("a line has more than %d bytes", maxLine)
			}
			continue
		}
		text := part
		if len(long) > 0 {
			text = append(long, part...)
			long = nil
		}
		if line, ended := bytes.CutSuffix(text, []byte("\n")); ended || len(line) > 0 {
			if err := f(line, ended); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// eachFile calls f with the content of each file that is there. The first one must be.
func eachFile(paths []string, f func(path string, content io.Reader) error) error {
	for i, path := range paths {
		file, err := safefile.Open(path)
		if errors.Is(err, fs.ErrNotExist) && i > 0 { // it was renamed, and nothing was written since
			continue
		}
		if err != nil {
			return err
		}
		err = f(path, file)
		if err = errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// Read calls f with each line of a record, older ones included, that can be read.
func Read(paths []string, f func(Line) error) error {
	return eachFile(paths, func(_ string, content io.Reader) error {
		return eachLine(content, func(text []byte, _ bool) error {
			line, err := Parse(text, false)
			if err != nil {
				return nil
			}
			return f(line)
		})
	})
}
