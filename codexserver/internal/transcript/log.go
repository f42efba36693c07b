package transcript

import (
	"fmt"
	"time"
)

// How many bytes are kept of one thread.
const (
	MaxTranscript = 4 << 20
	MaxDiffs      = 8 << 20
	MaxOutputs    = 8 << 20
)

// Log is what one thread does, as texts: the transcript, the diffs of its turns and the outputs of
// its commands. It is safe for concurrent use.
type Log struct {
	store      *Store
	file       *file
	transcript *text
	diffs      *text // nil before the first

	// Guarded by store.mu.
	turns    int
	running  bool
	commands int
	list     []*output          // the last commands, in the order of their start
	open     map[string]*output // by call
	answer   string             // the turn's last message so far
	closed   bool
	small    int // bytes of the outputs in memory whose commands have ended
}

// New returns the log of a new thread. The caller must close it.
func (s *Store) New() *Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.newFile()
	return &Log{store: s, file: f, transcript: f.transcript.newText()}
}

// Close removes everything. Later calls are ignored.
func (l *Log) Close() {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	l.closed = true
	l.file.close()
	l.transcript.clear()
	l.diffs, l.list, l.open = nil, nil, nil
}

// write runs f, which changes the texts, unless the log is closed.
func (l *Log) write(f func()) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if !l.closed {
		f()
	}
}

// Begin writes the start of a turn, with the user's words.
func (l *Log) Begin(words string) {
	now := time.Now().UTC().Format(time.RFC3339)
	l.write(func() {
		l.turns++
		l.running, l.answer = true, ""
		l.entry(fmt.Sprintf("=== turn %d, %s", l.turns, now), "")
		l.entry("user:", words)
	})
}

// End writes the end of the turn. Err is why it failed or was aborted, or nil.
func (l *Log) End(err error) {
	l.write(func() {
		l.running, l.answer = false, ""
		for _, o := range l.open {
			o.runs, o.unended, o.rest = false, true, nil
		}
		clear(l.open)
		if err != nil {
			l.entry("the turn did not complete:", err.Error())
		}
		l.transcript.rest()
	})
}

// Count returns how many turns and commands have begun.
func (l *Log) Count() (turns, commands int) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	return l.turns, l.commands
}

// Changed writes the diff of a turn that has ended.
func (l *Log) Changed(turn int, diff string) {
	l.write(func() {
		if l.diffs == nil {
			l.diffs = l.file.diffs.newText()
		}
		l.diffs.add(fmt.Sprintf("# turn %d\n", turn))
		l.diffs.add(valid(diff))
		l.diffs.rest()
	})
}

// Page is a part of a text.
type Page struct {
	// Text is the part.
	Text string
	// Offset is where the part begins in the whole text.
	Offset int64
	// Total is the length of the whole text.
	Total int64
	// Cut is how many bytes of the whole text are not kept.
	Cut int64
	// Note is a remark for the reader, or "".
	Note string
}

// Transcript returns a part of the transcript.
func (l *Log) Transcript(offset int64, most int) (Page, error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	return l.transcript.read(offset, most)
}

// Diff returns a part of the diffs of the turns that have ended.
func (l *Log) Diff(offset int64, most int) (Page, error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	p, err := l.diffs.read(offset, most)
	switch {
	case l.running:
		p.Note = "A turn is running: its diff comes when it has ended."
	case p.Total == 0:
		p.Note = "No turn is known to have changed files."
	}
	return p, err
}

// Output returns a part of the output of a command, by its number in the thread. 0 is the
// last one. It also returns the number.
func (l *Log) Output(command int, offset int64, most int) (p Page, number int, err error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if command == 0 {
		command = l.commands
	}
	first := l.commands - len(l.list) + 1
	switch {
	case l.commands == 0:
		return p, 0, &RangeError{"command", "no command has run"}
	case command < 1 || command > l.commands:
		return p, 0, &RangeError{"command", fmt.Sprintf("%d is not one of the %d that have run", command, l.commands)}
	case command < first:
		return p, 0, &RangeError{"command", fmt.Sprintf("%d is no longer kept: the first that is is %d", command, first)}
	}
	o := l.list[command-first]
	if p, err = o.text.read(offset, most); err != nil {
		return p, command, err
	}
	p.Cut += o.omitted
	switch {
	case o.runs:
		p.Note = "The command is running."
	case o.unended:
		p.Note = "The turn ended before the command did."
	case p.Total == 0:
		p.Note = "The command has printed nothing."
	}
	return p, command, nil
}
