package transcript

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// How many bytes are kept of one thread in its file. Without a file it is a quarter of each.
const (
	MaxTranscript = 4 << 20
	MaxDiffs      = 8 << 20
	MaxOutputs    = 8 << 20
)

// Log is what one thread does, as texts: the transcript, the diffs of its turns and the outputs of
// its commands. It is safe for concurrent use.
type Log struct {
	mu                         sync.Mutex
	folder                     string   // of the file; "" keeps the bytes in memory
	file                       *os.File // nil before there is much to keep
	transcript, diffs, outputs ring
	shown                      []byte // the last of what the page shows

	// Engine is what the page calls the engine. It is set before the log is used. Default: as the transcript does.
	Engine string

	turns    int
	running  bool
	commands int
	list     []*output          // the last commands, in the order of their start
	open     map[string]*output // by call
	closed   bool
}

// New returns the log of a new thread, which keeps much of its texts in a file without a name in a folder, which is
// made if missing. Without a folder, or if there can be no such file, it keeps less, in memory. The caller must close
// it.
func New(folder string) *Log {
	l := &Log{folder: folder, open: map[string]*output{}}
	l.transcript = ring{log: l, size: MaxTranscript}
	l.diffs = ring{log: l, base: MaxTranscript, size: MaxDiffs}
	l.outputs = ring{log: l, base: MaxTranscript + MaxDiffs, size: MaxOutputs}
	if folder == "" {
		l.inMemory()
	}
	return l
}

func (l *Log) rings() []*ring { return []*ring{&l.transcript, &l.diffs, &l.outputs} }

// Close removes everything. Later calls are ignored.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, r := range l.rings() {
		*r = ring{log: l, size: r.size}
	}
	l.list, l.open, l.shown = nil, nil, nil
	if l.file != nil {
		l.file.Close() // it has no name, so that its bytes go
		l.file, l.folder = nil, ""
	}
}

// write runs f, which changes the texts, unless the log is closed.
func (l *Log) write(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		f()
	}
}

// Begin writes the start of a turn, with the user's words, and returns its number in the thread.
func (l *Log) Begin(words string) (number int) {
	now := time.Now().UTC().Format(time.RFC3339)
	l.write(func() {
		l.turns++
		number, l.running = l.turns, true
		l.keep(fmt.Sprintf("=== turn %d, %s", l.turns, now), "")
		l.show(fmt.Sprintf("turn %d", l.turns), "")
		l.entry("user:", words)
	})
	return number
}

// End writes the end of the turn. Err is why it failed or was aborted, or nil.
func (l *Log) End(err error) {
	l.write(func() {
		l.running = false
		for _, o := range l.open {
			o.unended = true
			if lines := o.last.Excerpt(); lines != "" {
				l.shows(entryOf(fmt.Sprintf("command %d had printed:", o.number), lines, maxEntry, printed))
			}
			l.ended(o, string(o.begins))
		}
		clear(l.open)
		if err != nil {
			l.entry("the turn did not complete:", err.Error())
		}
	})
}

// Changed writes the diff of a turn that has ended.
func (l *Log) Changed(turn int, diff string) {
	l.write(func() { l.diffs.write(fmt.Sprintf("# turn %d\n", turn) + valid(diff)) })
}

// Page is a part of a text, as clients read it.
type Page struct {
	// Offset is where the part begins in the whole text, and Next where the one after it does; 0 at the end.
	Offset int64 `json:"offset"`
	Next   int64 `json:"next,omitzero"`
	// Total is the length of the whole text.
	Total int64 `json:"total"`
	// Cut is how many bytes of the whole text are not kept.
	Cut int64 `json:"cut,omitzero"`
	// Note is a remark for the reader, or "".
	Note string `json:"note,omitzero"`
	// Text is the part.
	Text string `json:"content"`
}

// Transcript returns a part of the transcript.
func (l *Log) Transcript(offset int64, most int) (Page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.transcript.page(0, l.transcript.end, offset, most)
}

// Diff returns a part of the diffs of the turns that have ended.
func (l *Log) Diff(offset int64, most int) (Page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, err := l.diffs.page(0, l.diffs.end, offset, most)
	switch {
	case l.running:
		p.Note = "A turn is running: its diff comes when it has ended."
	case p.Total == 0:
		p.Note = "No turn is known to have changed files."
	}
	return p, err
}

// Output returns a part of the output of a command, by its number in the thread. 0 is the
// last one. It also returns the number. The error of a missing part is for the caller of codex-show.
func (l *Log) Output(command int, offset int64, most int) (p Page, number int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if command == 0 {
		command = l.commands
	}
	first := l.commands - len(l.list) + 1
	switch {
	case l.commands == 0:
		return p, 0, errors.New("argument /command: no command has run")
	case command < 1 || command > l.commands:
		return p, 0, fmt.Errorf("argument /command: %d is not one of the %d that have run", command, l.commands)
	case command < first:
		return p, 0, fmt.Errorf("argument /command: %d is no longer kept: the first that is is %d", command, first)
	}
	o := l.list[command-first]
	if p, err = l.printed(o, offset, most); err != nil {
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
