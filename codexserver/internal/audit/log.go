package audit

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Log is an [io.Writer] of lines that links them to the chain of a file. It is safe for concurrent use.
type Log struct {
	file   *safefile.Log
	own    bool // Close closes the file
	writer string

	marked *os.File // only while lines are appended, one after another
	open   sync.Map // of the beginnings without an end, by their id
}

// Open opens the record at path as [safefile.OpenLog] does, and closes what a dead server left unfinished there.
func Open(path string, most int64) (*Log, error) {
	file, err := safefile.OpenLog(path, most)
	if err != nil {
		return nil, err
	}
	l := On(file)
	l.own = true
	if err := l.Recover(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

// On returns a record in a file that is already open. Several may share a file.
func On(file *safefile.Log) *Log {
	return &Log{file: file, writer: newWriter()}
}

func newWriter() string { return fmt.Sprintf("%d-%s", os.Getpid(), strings.ToLower(rand.Text()[:12])) }

// Write implements [io.Writer] for one line with its end. After an error nothing of it is in the file.
func (l *Log) Write(line []byte) (int, error) {
	text := bytes.TrimSuffix(line, []byte("\n"))
	err := l.file.Append(func(w safefile.Written) ([]byte, error) {
		e, err := l.end(w)
		if err != nil {
			return nil, err
		}
		return e.chain(l.writer, !w.Locked, text)
	})
	if err != nil {
		return 0, err
	}
	l.follow(text)
	return len(line), nil
}

// follow keeps which effects are open.
func (l *Log) follow(text []byte) {
	if !bytes.HasPrefix(text, beginsMark) && !bytes.HasPrefix(text, endsMark) {
		return
	}
	switch line, err := Parse(text, false); {
	case err != nil: // not ours
	case line.Effect == Begins:
		l.open.Store(line.ID, Line{ID: line.ID, Thread: line.Thread, Principal: line.Principal})
	default:
		l.open.Delete(line.Of)
	}
}

// end returns the end of the chain. It marks the file, so that other processes know that this one lives.
func (l *Log) end(w safefile.Written) (end, error) {
	if l.marked != w.File {
		if err := mark(w.File, l.writer); err != nil {
			return end{}, err
		}
		l.marked = w.File
	}
	e, found, err := endOf(w.File, w.Size)
	if err != nil || found || w.Size > 0 && !e.cut {
		return e, err
	}
	if whole, err := wholeLines(w.File, w.Size); err != nil || whole > 0 {
		return e, err
	}
	before, err := before(l.file.Name())
	before.cut, before.torn = e.cut, e.torn
	return before, err
}

// before returns the end of the file that the one at path has replaced. It is the zero end if there is none.
func before(path string) (end, error) {
	f, err := safefile.Open(path + ".1")
	if errors.Is(err, fs.ErrNotExist) {
		return end{}, nil
	}
	if err != nil {
		return end{}, err
	}
	defer f.Close()
	e, _, err := endOf(f, f.Info().Size())
	return e, err
}

// The words for effects whose end nobody reported.
const (
	wordsKilled = "the server ended before it reported how this ended"
	wordsClosed = "the end was not reported before the server ended"
)

// Recover closes what dead servers left unfinished. It only reads the end of the file if there is nothing to
// close.
func (l *Log) Recover() error {
	return l.file.Append(func(w safefile.Written) ([]byte, error) {
		e, err := l.end(w)
		if err != nil || e.open == 0 || !w.Locked {
			return nil, err
		}
		dead, err := l.unfinished(w)
		if err != nil || len(dead) == 0 {
			return nil, err
		}
		lines, err := endings(dead, wordsKilled)
		if err != nil {
			return nil, err
		}
		return e.chain(l.writer, false, lines...)
	})
}

// unfinished returns the effects of dead servers that have no end.
func (l *Log) unfinished(w safefile.Written) (dead []Line, err error) {
	open := map[string]Line{}
	var order []string
	look := func(f io.Reader) error {
		return eachLine(f, func(text []byte, _ bool) error {
			if !bytes.HasPrefix(text, beginsMark) && !bytes.HasPrefix(text, endsMark) {
				return nil
			}
			line, err := Parse(text, false)
			switch {
			case err != nil || line.Chain == nil:
			case line.Effect == Begins:
				open[line.ID] = line
				order = append(order, line.ID)
			default:
				delete(open, line.Of)
			}
			return nil
		})
	}
	if old, err := safefile.Open(l.file.Name() + ".1"); err == nil {
		err = look(old)
		if err = errors.Join(err, old.Close()); err != nil {
			return nil, err
		}
	}
	if err := look(io.NewSectionReader(w.File, 0, w.Size)); err != nil {
		return nil, err
	}
	lives := map[string]bool{l.writer: true}
	for _, id := range order {
		line, ok := open[id]
		if !ok {
			continue
		}
		writer := line.Chain.Writer
		if _, known := lives[writer]; !known {
			lives[writer] = alive(l.file.Name(), writer)
		}
		if !lives[writer] {
			dead = append(dead, line)
		}
		delete(open, id) // an id that is there twice is closed once
	}
	return dead, nil
}

func endings(of []Line, words string) (lines [][]byte, err error) {
	for _, o := range of {
		line := Line{Effect: Ends, Time: time.Now().UTC(), Thread: o.Thread, Principal: o.Principal, Of: o.ID, Words: words}
		text, err := line.Append(nil)
		if err != nil {
			return nil, err
		}
		lines = append(lines, text)
	}
	return lines, nil
}

// Close closes the effects that have begun here and not ended, and then the file if Open opened it. Nothing may be
// written afterwards.
func (l *Log) Close() error {
	var left []Line
	l.open.Range(func(_, line any) bool { left = append(left, line.(Line)); return true })
	lines, err := endings(left, wordsClosed)
	for _, line := range lines {
		_, werr := l.Write(line)
		err = errors.Join(err, werr)
	}
	if l.own {
		return errors.Join(err, l.file.Close())
	}
	return errors.Join(err, l.leave())
}

// leave removes the mark from a file that stays open, which would have one more for each record.
func (l *Log) leave() error {
	err := l.file.Append(func(w safefile.Written) ([]byte, error) {
		marked := l.marked
		if l.marked = nil; marked != w.File { // the mark ended with the file that was replaced
			return nil, nil
		}
		return nil, unmark(marked, l.writer)
	})
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Linked returns a writer of a chain of its own, which continues nothing. One goroutine at a time may write.
func Linked(w io.Writer) io.Writer { return &linked{w: w, writer: newWriter()} }

type linked struct {
	w      io.Writer
	writer string
	end    end
}

// Write implements [io.Writer].
func (l *linked) Write(line []byte) (int, error) {
	text := bytes.TrimSuffix(line, []byte("\n"))
	next := l.end
	all, err := next.chain(l.writer, false, text)
	if err == nil {
		_, err = l.w.Write(all)
	}
	if err != nil {
		return 0, err
	}
	l.end = next
	return len(line), nil
}

// place is the byte, beyond the end of every file, by which a writer marks a file.
func place(writer string) int64 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, writer) // never fails
	return 1<<40 + int64(h.Sum32())
}
